import assert from 'node:assert/strict';
import { Metadata } from '@grpc/grpc-js';
import { test } from 'vitest';
import type { EtcdError } from '../etcd-error.ts';
import { etcdErrorOf } from './etcd-error-of.ts';

const codeOf = (details: string): string => etcdErrorOf('here', Object.assign(new Error('x'), { details })).etcdCode;

test('what a server says beside its text is told, and the text stays what it is', () => {
  const metadata = new Metadata();
  const refused = (): EtcdError =>
    etcdErrorOf('here', Object.assign(new Error('x'), { details: 'etcdserver: request timed out', metadata }));
  assert.equal(refused().reason, undefined);
  metadata.set('tenure-reason', 'nobody leads');
  const { details, reason, message } = refused();
  assert.equal(details, 'etcdserver: request timed out');
  assert.equal(reason, 'nobody leads');
  assert.equal(message, 'here: etcdserver: request timed out: nobody leads');
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
  assert.equal(codeOf('No connection established. Last error: null'), 'unreachable');
  assert.equal(codeOf('etcdserver: too many requests'), 'refused');
  assert.equal(codeOf('etcdserver: permission denied'), 'denied');
});
