import type * as grpc from '@grpc/grpc-js';
import { EngineError } from '../engine-error.ts';
import type { EngineErrorCode } from '../engine-error.ts';
import type { EngineTrouble } from '../engine-trouble.ts';

/**
 * What a failed request says about itself.
 * - `unreachable`: there was no connection; nothing was sent.
 * - `refused`: etcd says that it did nothing, and may do it later.
 * - `token`: etcd did nothing, because the token is not valid any more.
 * - `denied`: etcd did nothing, and will not for this user.
 * - `invalid`: etcd did nothing, since it does not take such a request.
 * - `compacted`: the revision that was asked for is gone.
 * - `ambiguous`: it may have been done, or may still be.
 */
export type EtcdFailureKind = 'unreachable' | 'refused' | 'token' | 'denied' | 'invalid' | 'compacted' | 'ambiguous';

/** A request to etcd that failed. `message` holds the endpoint and etcd's own words. */
export class EtcdFailure extends Error {
  readonly kind: EtcdFailureKind;
  /** etcd's words alone. */
  readonly details: string;

  constructor(kind: EtcdFailureKind, endpoint: string, details: string, cause?: unknown) {
    super(`${endpoint}: ${details}`, cause === undefined ? undefined : { cause });
    this.name = 'EtcdFailure';
    this.kind = kind;
    this.details = details;
  }
}

/** grpc-js' words for a call that found no connection. If they ever change, the outcome counts as ambiguous. */
const neverSent = 'No connection established';

/**
 * etcd's words for what it refuses before it is proposed, or when it is applied by all members alike. What is not
 * listed is ambiguous, whatever its code: `request timed out` and `leader changed` come after the proposal, and so may
 * `database space exceeded`: the write during which a member finds its quota used up is applied, and then refused.
 */
const knownTexts: ReadonlyMap<string, EtcdFailureKind> = new Map([
  ['etcdserver: invalid auth token', 'token'],
  ['etcdserver: revision of auth store is old', 'token'],
  ['etcdserver: permission denied', 'denied'],
  ['etcdserver: user name is empty', 'denied'],
  ['etcdserver: user name not found', 'denied'],
  ['etcdserver: authentication failed, invalid user ID or password', 'denied'],
  ['etcdserver: too many requests', 'refused'],
  ['etcdserver: rpc not supported for learner', 'refused'],
  ['etcdserver: request is too large', 'invalid'],
  ['etcdserver: too many operations in txn request', 'invalid'],
  ['etcdserver: mvcc: required revision has been compacted', 'compacted'],
]);

const noSpace = 'etcdserver: mvcc: database space exceeded';

/** What etcd's refusals ask of the operator. */
const advice: ReadonlyMap<string, string> = new Map([
  [
    noSpace,
    'etcd has reached its quota and takes no writes: compact it, run etcdctl defrag and then etcdctl alarm disarm, ' +
      'or raise --quota-backend-bytes',
  ],
  ['etcdserver: request is too large', 'start etcd with its default --max-request-bytes (1.5 MiB) or more'],
  [
    'etcdserver: user name is empty',
    'etcd asks for a user and a password: give --engine-user, and TENURE_ENGINE_PASSWORD or --engine-password-file',
  ],
  ['etcdserver: authentication failed, invalid user ID or password', 'give the right user and password'],
]);

/** Sorts what a call ended with. */
export function failureOf(endpoint: string, error: unknown): EtcdFailure {
  if (error instanceof EtcdFailure) return error;
  const details = isServiceError(error) ? error.details : error instanceof Error ? error.message : String(error);
  return new EtcdFailure(kindOf(details), endpoint, details, error);
}

function kindOf(details: string): EtcdFailureKind {
  if (details.startsWith(neverSent)) return 'unreachable';
  return knownTexts.get(details) ?? 'ambiguous';
}

/** What is wrong with etcd, or with the way to it. */
export function troubleOf({ kind, details }: EtcdFailure): EngineTrouble {
  if (details === noSpace) return 'full';
  if (kind === 'denied' || kind === 'token') return 'refusing';
  return kind === 'invalid' || kind === 'compacted' ? 'failing' : 'unreachable';
}

/**
 * The failure in the engine's terms. An ambiguous one becomes `ambiguous`: `unknown` for an append, and `unavailable`
 * for what may be done again without harm.
 */
export function engineErrorOf(what: string, error: unknown, ambiguous: 'unknown' | 'unavailable'): Error {
  if (!(error instanceof EtcdFailure)) return error instanceof Error ? error : new Error(String(error));
  const help = advice.get(error.details);
  const words = help === undefined ? error.message : `${error.message} (${help})`;
  return new EngineError(codeOf(error.kind, ambiguous), `${what}: ${words}`, {
    cause: error,
    trouble: troubleOf(error),
  });
}

function codeOf(kind: EtcdFailureKind, ambiguous: 'unknown' | 'unavailable'): EngineErrorCode {
  switch (kind) {
    case 'ambiguous':
      return ambiguous;
    case 'unreachable':
    case 'refused':
    case 'token':
    case 'compacted':
      return 'unavailable';
    case 'denied':
    case 'invalid':
      return 'unusable';
  }
}

function isServiceError(error: unknown): error is grpc.ServiceError {
  return error instanceof Error && 'details' in error && typeof error.details === 'string' && 'code' in error;
}
