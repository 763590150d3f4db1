import { describe, expect, test } from 'vitest';
import { rpcMethods } from './methods.ts';

function paths(service: string): string[] {
  return [...rpcMethods.values()].filter((method) => method.service === service).map((method) => method.name);
}

describe('the table of methods', () => {
  test('has every service of etcd and its RPCs', () => {
    expect(paths('etcdserverpb.KV')).toEqual(['Range', 'Put', 'DeleteRange', 'Txn', 'Compact']);
    expect(paths('etcdserverpb.Lease')).toEqual([
      'LeaseGrant',
      'LeaseRevoke',
      'LeaseKeepAlive',
      'LeaseTimeToLive',
      'LeaseLeases',
    ]);
    expect(paths('etcdserverpb.Auth')).toHaveLength(17);
    expect(paths('etcdserverpb.Cluster')).toHaveLength(5);
    expect(paths('etcdserverpb.Maintenance')).toHaveLength(8);
    expect(paths('v3electionpb.Election')).toHaveLength(5);
    expect(paths('v3lockpb.Lock')).toEqual(['Lock', 'Unlock']);
  });

  test('knows which RPCs stream', () => {
    const streaming = [...rpcMethods.values()].filter((method) => method.kind !== 'unary');
    expect(streaming.map(({ path, kind }) => `${path} ${kind}`)).toEqual([
      '/etcdserverpb.Watch/Watch bidi',
      '/etcdserverpb.Lease/LeaseKeepAlive bidi',
      '/etcdserverpb.Maintenance/Snapshot serverStream',
      '/v3electionpb.Election/Observe serverStream',
      '/grpc.health.v1.Health/Watch serverStream',
    ]);
  });
});
