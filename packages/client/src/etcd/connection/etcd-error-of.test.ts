import { expect, test } from 'vitest';
import { GrpcCallError, GrpcCode } from '@tenure/grpc-client';
import { reasonTrailer } from '@tenure/protocol';
import type { EtcdError } from './etcd-error.ts';
import { etcdErrorOf } from './etcd-error-of.ts';

function codeOf(details: string, wasSent = true): string {
  return etcdErrorOf('here', new GrpcCallError(GrpcCode.unavailable, details, { wasSent })).etcdCode;
}

test('details of a server are kept beside its error text, which stays unchanged', () => {
  const text = 'etcdserver: request timed out';
  const refused = (trailers: Record<string, string>): EtcdError =>
    etcdErrorOf('here', new GrpcCallError(GrpcCode.unavailable, text, { wasSent: true, trailers }));
  expect(refused({}).reason).toBe(undefined);
  const { details, reason, message } = refused({ [reasonTrailer]: 'there is no leader' });
  expect(details).toBe('etcdserver: request timed out');
  expect(reason).toBe('there is no leader');
  expect(message).toBe('here: etcdserver: request timed out: there is no leader');
});

test('errors that may come after the write are ambiguous, and so are unknown errors', () => {
  for (const details of [
    'etcdserver: mvcc: database space exceeded',
    'etcdserver: no leader',
    'etcdserver: request timed out',
    'etcdserver: leader changed',
    'Connection dropped',
    '',
  ]) {
    expect(codeOf(details), details).toBe('ambiguous');
  }
  expect(codeOf('connect ECONNREFUSED 127.0.0.1:1', false)).toBe('unreachable');
  expect(codeOf('connect ECONNREFUSED 127.0.0.1:1')).toBe('ambiguous');
  expect(codeOf('etcdserver: too many requests')).toBe('refused');
  expect(codeOf('etcdserver: permission denied')).toBe('denied');
});
