import assert from 'node:assert/strict';
import { test } from 'vitest';
import { etcdErrorOf } from './etcd-error-of.ts';

const codeOf = (details: string): string => etcdErrorOf('here', Object.assign(new Error('x'), { details })).etcdCode;

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
