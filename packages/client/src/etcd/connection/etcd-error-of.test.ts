import assert from 'node:assert/strict';
import { test } from 'vitest';
import { GrpcCallError, GrpcCode } from '@tenure/grpc-client';
import { reasonTrailer } from '@tenure/protocol';
import type { EtcdError } from './etcd-error.ts';
import { etcdErrorOf } from './etcd-error-of.ts';

function codeOf(details: string, wasSent = true): string {
  return etcdErrorOf('here', new GrpcCallError(GrpcCode.unavailable, details, { wasSent })).etcdCode;
}

test('what a server says beside its text is told, and the text stays what it is', () => {
  const text = 'etcdserver: request timed out';
  const refused = (trailers: Record<string, string>): EtcdError =>
    etcdErrorOf('here', new GrpcCallError(GrpcCode.unavailable, text, { wasSent: true, trailers }));
  assert.equal(refused({}).reason, undefined);
  const { details, reason, message } = refused({ [reasonTrailer]: 'there is no leader' });
  assert.equal(details, 'etcdserver: request timed out');
  assert.equal(reason, 'there is no leader');
  assert.equal(message, 'here: etcdserver: request timed out: there is no leader');
});

test('what may come after the write is ambiguous, and so is all that is not known', () => {
  for (const details of [
    'etcdserver: mvcc: database space exceeded',
    'etcdserver: no leader',
    'etcdserver: request timed out',
    'etcdserver: leader changed',
    'Connection dropped',
    '',
  ]) {
    assert.equal(codeOf(details), 'ambiguous', details);
  }
  assert.equal(codeOf('connect ECONNREFUSED 127.0.0.1:1', false), 'unreachable');
  assert.equal(codeOf('connect ECONNREFUSED 127.0.0.1:1'), 'ambiguous');
  assert.equal(codeOf('etcdserver: too many requests'), 'refused');
  assert.equal(codeOf('etcdserver: permission denied'), 'denied');
});
