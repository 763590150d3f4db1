import { expect, test } from 'vitest';
import { EtcdError } from 'tenure/etcd';
import { engineErrorOf } from './engine-error-of.ts';

test('an append that etcd refuses for want of space may have been applied', () => {
  const failure = new EtcdError('ambiguous', 'etcd:2379', 'etcdserver: mvcc: database space exceeded');
  const error = engineErrorOf('an append failed', failure, 'unknown');
  expect(error).toMatchObject({ name: 'EngineError', code: 'unknown' });
  expect(error.message).toMatch(/space exceeded .*etcdctl defrag/);
});

test('an append that etcd refuses before it is proposed was not applied', () => {
  const failure = new EtcdError('refused', 'etcd:2379', 'etcdserver: too many requests');
  expect(engineErrorOf('an append failed', failure, 'unknown')).toMatchObject({ code: 'unavailable' });
});
