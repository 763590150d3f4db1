import { expect, test } from 'vitest';
import { engineErrorOf, failureOf } from './etcd-failure.ts';

test('an append that etcd refuses for want of space may have been applied', () => {
  const failure = failureOf('etcd:2379', new Error('etcdserver: mvcc: database space exceeded'));
  expect(failure.kind).toBe('ambiguous');
  const error = engineErrorOf('an append failed', failure, 'unknown');
  expect(error).toMatchObject({ name: 'EngineError', code: 'unknown' });
  expect(error.message).toMatch(/space exceeded .*etcdctl defrag/);
});

test('an append that etcd refuses before it is proposed was not applied', () => {
  const failure = failureOf('etcd:2379', new Error('etcdserver: too many requests'));
  expect(engineErrorOf('an append failed', failure, 'unknown')).toMatchObject({ code: 'unavailable' });
});
