import { BackendError } from '../errors/backend-error.ts';
import type { BackendErrorCode } from '../errors/backend-error.ts';
import { EtcdError } from './connection/etcd-error.ts';
import type { EtcdErrorCode } from './connection/etcd-error.ts';

const codes: Readonly<Record<EtcdErrorCode, BackendErrorCode>> = {
  unreachable: 'unavailable',
  ambiguous: 'unavailable',
  refused: 'unavailable',
  compacted: 'unavailable',
  'not-found': 'unavailable',
  denied: 'misconfigured',
  invalid: 'refused',
  closed: 'closed',
};

/** What to do about errors of etcd. */
const advice: ReadonlyMap<string, string> = new Map([
  ['etcdserver: user name is empty', 'etcd requires a user and a password: give both'],
  ['etcdserver: permission denied', 'grant the user readwrite on the prefix of the leases'],
  ['etcdserver: authentication failed, invalid user ID or password', 'give the right user and password'],
  ['etcdserver: mvcc: database space exceeded', 'compact and defragment etcd, then disarm its alarm'],
]);

export function backendErrorOf(error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  if (!(error instanceof EtcdError)) {
    const words = error instanceof Error ? error.message : String(error);
    return new BackendError('etcd', 'unavailable', words, { cause: error });
  }
  const help = advice.get(error.details);
  const words = help === undefined ? error.message : `${error.message} (${help})`;
  return new BackendError('etcd', codes[error.etcdCode], words, { cause: error });
}
