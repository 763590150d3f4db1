import { EtcdError, isStaleToken } from 'tenure/etcd';
import { EngineError } from '../engine-error.ts';
import type { EngineErrorCode } from '../engine-error.ts';
import type { EngineTrouble } from '../engine-trouble.ts';

const noSpace = 'etcdserver: mvcc: database space exceeded';

/** The operator's remedy for etcd's refusals. */
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

/** The fault of etcd, or of the connection to it. */
export function troubleOf(error: EtcdError): EngineTrouble {
  const { etcdCode, details } = error;
  if (details === noSpace) return 'full';
  if (etcdCode === 'denied' || isStaleToken(error)) return 'refusing';
  return etcdCode === 'invalid' || etcdCode === 'compacted' ? 'failing' : 'unreachable';
}

/**
 * The failure as an EngineError. An ambiguous one becomes `ambiguous`: `unknown` for an append, and `unavailable` for
 * an operation that may be repeated.
 */
export function engineErrorOf(what: string, error: unknown, ambiguous: 'unknown' | 'unavailable'): Error {
  if (!(error instanceof EtcdError)) return error instanceof Error ? error : new Error(String(error));
  const help = advice.get(error.details);
  const words = help === undefined ? error.message : `${error.message} (${help})`;
  return new EngineError(codeOf(error, ambiguous), `${what}: ${words}`, {
    cause: error,
    trouble: troubleOf(error),
  });
}

function codeOf(error: EtcdError, ambiguous: 'unknown' | 'unavailable'): EngineErrorCode {
  if (isStaleToken(error)) return 'unavailable';
  switch (error.etcdCode) {
    case 'ambiguous':
      return ambiguous;
    case 'denied':
    case 'invalid':
    case 'not-found':
      return 'unusable';
    default:
      return 'unavailable';
  }
}
