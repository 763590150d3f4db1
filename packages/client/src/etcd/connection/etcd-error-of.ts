import { GrpcCallError } from '@tenure/grpc-client';
import { reasonTrailer } from '@tenure/protocol';
import { EtcdError } from './etcd-error.ts';
import type { EtcdErrorCode } from './etcd-error.ts';

const staleTokenTexts: ReadonlySet<string> = new Set([
  'etcdserver: invalid auth token',
  'etcdserver: revision of auth store is old',
]);

/**
 * Errors that the server returns before it proposes the request, or while it applies it but before any change. An error
 * that is not listed is ambiguous, whatever its gRPC code. `request timed out` and `leader changed` come after the
 * proposal. So may `database space exceeded`: the quota is checked again when the entry has been applied, and the error
 * is then that of an executed put. `no leader` also ends a stream on which requests were sent before.
 */
const codes: ReadonlyMap<string, EtcdErrorCode> = new Map([
  ['etcdserver: invalid auth token', 'denied'],
  ['etcdserver: revision of auth store is old', 'refused'],
  ['etcdserver: permission denied', 'denied'],
  ['etcdserver: user name is empty', 'denied'],
  ['etcdserver: user name not found', 'denied'],
  ['etcdserver: authentication failed, invalid user ID or password', 'denied'],
  ['etcdserver: authentication is not enabled', 'invalid'],
  ['etcdserver: too many requests', 'refused'],
  ['etcdserver: rpc not supported for learner', 'refused'],
  ['etcdserver: request is too large', 'invalid'],
  ['etcdserver: too many operations in txn request', 'invalid'],
  ['etcdserver: duplicate key given in txn request', 'invalid'],
  ['etcdserver: key is not provided', 'invalid'],
  ['etcdserver: key not found', 'not-found'],
  ['etcdserver: requested lease not found', 'not-found'],
  ['etcdserver: lease already exists', 'invalid'],
  ['etcdserver: too large lease TTL', 'invalid'],
  ['etcdserver: mvcc: required revision is a future revision', 'invalid'],
  ['etcdserver: mvcc: required revision has been compacted', 'compacted'],
]);

/** Classifies the error of a call. */
export function etcdErrorOf(endpoint: string, error: unknown): EtcdError {
  if (error instanceof EtcdError) return error;
  const details = detailsOf(error);
  const isUnsent = error instanceof GrpcCallError && !error.wasSent;
  const code = isUnsent ? 'unreachable' : (codes.get(details) ?? 'ambiguous');
  return new EtcdError(code, endpoint, details, { cause: error, reason: reasonOf(error) });
}

/** Whether the server refused only the token, so that a retry with a new one may succeed. Nothing was executed. */
export function isStaleToken({ details }: EtcdError): boolean {
  return staleTokenTexts.has(details);
}

/** The maximum length of a server's text in a message. */
const maxReasonChars = 200;

function reasonOf(error: unknown): string | undefined {
  return error instanceof GrpcCallError ? error.trailers[reasonTrailer]?.slice(0, maxReasonChars) : undefined;
}

function detailsOf(error: unknown): string {
  if (error instanceof GrpcCallError) return error.details;
  return error instanceof Error ? error.message : String(error);
}
