import { rpcMethods } from '@tenure/protocol';
import { expect, test } from 'vitest';
import { gatewayMethods } from './gateway-paths.ts';

test('every method of the protocol has a path, but for the health service', () => {
  const reachable = new Set([...gatewayMethods.values()].map(({ path }) => path));
  const etcds = [...rpcMethods.values()].filter(({ service }) => !/^(?:grpc\.health\.|tenure\.)/.test(service));
  expect([...reachable].toSorted()).toEqual(etcds.map(({ path }) => path).toSorted());
});

test('a second path is that of an earlier version', () => {
  const firsts = new Set<string>();
  const seconds = [...gatewayMethods].filter(([, { path }]) => firsts.size === firsts.add(path).size);
  expect(seconds.map(([path]) => path)).toEqual([
    '/v3/kv/lease/revoke',
    '/v3/kv/lease/timetolive',
    '/v3/kv/lease/leases',
  ]);
});
