import { BackendError, LeaseHeldError, LeaseLostError, UsageError } from 'tenure';
import { EtcdError } from 'tenure/etcd';
import { expect, test } from 'vitest';
import { explainFailure } from './etcd-failure.ts';

const timeoutMs = 5000;
const late = 'host:1 did not answer within 5000 ms: a change may have been made or not (try: tenure status)';

function explained(details: string, status: number, reason?: string): unknown {
  const cause = Object.assign(new Error(`${status}`), { code: status });
  return explainFailure(new EtcdError('ambiguous', 'host:1', details, { cause, reason }), timeoutMs);
}

test('details of a server follow its error text', () => {
  const message = 'etcdserver: request timed out: there is no leader';
  expect(explained('etcdserver: request timed out', 14, 'there is no leader')).toMatchObject({
    code: 'timeout',
    message,
  });
});

test.each([
  ['etcdserver: requested lease not found', 5, 'failed', 'etcdserver: requested lease not found'],
  ['etcdserver: request timed out', 14, 'timeout', 'etcdserver: request timed out'],
  ['etcdserver: no leader', 14, 'unreachable', 'etcdserver: no leader'],
  [
    'etcdserver: mvcc: database space exceeded',
    8,
    'failed',
    'etcdserver: mvcc: database space exceeded (a change may have been made or not)',
  ],
  ['etcdserver: too slow', 4, 'timeout', 'etcdserver: too slow'],
  ['', 12, 'failed', 'the server refused with gRPC status 12'],
  [
    'Received HTTP status code 404',
    12,
    'unreachable',
    'host:1 answered with HTTP 404: is that an etcd or Tenure server?',
  ],
  ['Deadline exceeded after 5000 ms', 4, 'timeout', late],
  ['context deadline exceeded', 4, 'timeout', late],
  ['context deadline exceeded', 2, 'timeout', late],
  [
    'etcdserver: user name is empty',
    3,
    'failed',
    'etcdserver: user name is empty (give --user, and the password in TENURE_PASSWORD)',
  ],
  [
    'read ECONNRESET',
    14,
    'unreachable',
    'the connection to host:1 broke before the answer came: a change may have been made or not (read ECONNRESET)',
  ],
])('%s with status %i is %s', (details, status, code, message) => {
  expect(explained(details, status)).toMatchObject({ code, message });
});

test.each([
  ['a:1: connect ECONNREFUSED 127.0.0.1:1', 'no server at a:1; start one with: tenure serve'],
  ['a:1: getaddrinfo ENOTFOUND a', 'no address is known for a:1'],
  ['a:1: it does not answer', 'a:1 does not answer as an etcd or Tenure server does'],
  ['a:1: Protocol error', 'a:1 does not answer as an etcd or Tenure server does'],
  ['a:1: self-signed certificate', 'cannot connect to a:1: self-signed certificate'],
  ['a:1: it does not speak TLS', 'it does not speak TLS: leave out https://'],
  ['a:1: it does not answer; b:2: connect ECONNREFUSED', 'server does; no server at b:2'],
])('no connection to a server: %s', (details, message) => {
  const error = new EtcdError('unreachable', 'no connection', details);
  const expected = { code: 'unreachable', message: expect.stringContaining(message) };
  expect(explainFailure(error, timeoutMs)).toMatchObject(expected);
  expect(explainFailure(new BackendError('etcd', 'unavailable', 'x', { cause: error }), timeoutMs)).toMatchObject(
    expected,
  );
});

test('a server without users has an error of its own, since it can be reached', () => {
  const cause = new EtcdError('unreachable', 'a:1', 'Authenticate is not implemented by this version of Tenure');
  const expected = { code: 'failed', message: 'a:1 knows no users yet: leave out --user and TENURE_USER' };
  expect(explainFailure(cause, timeoutMs)).toMatchObject(expected);
});

test('the other errors of the library have codes of their own, and foreign errors stay unchanged', () => {
  expect(explainFailure(new UsageError('too long'), timeoutMs)).toMatchObject({ code: 'usage', message: 'too long' });
  expect(explainFailure(new LeaseHeldError('a', 'b'), timeoutMs)).toMatchObject({ code: 'not-acquired' });
  expect(explainFailure(new LeaseLostError('a', 'revoked'), timeoutMs)).toMatchObject({ code: 'lost' });
  const missing = new BackendError('etcd', 'driver-missing', 'npm install it');
  expect(explainFailure(missing, timeoutMs)).toMatchObject({ code: 'failed', message: 'etcd: npm install it' });
  const other = new Error('a fault');
  expect(explainFailure(other, timeoutMs)).toBe(other);
});
