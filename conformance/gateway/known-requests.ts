import { rpcMethods } from '@tenure/protocol';
import type { GatewayRequest } from './exchange.ts';

const put = '/v3/kv/put';
const range = '/v3/kv/range';
const txn = '/v3/kv/txn';
const watch = '/v3/watch';
const keepAlive = '/v3/lease/keepalive';

/** What every method answers to what is no message. Those with both kinds of streams drop it without a word. */
export function malformedFor(paths: Iterable<readonly [string, string]>): GatewayRequest[] {
  const single = [...paths].filter(([, rpcPath]) => rpcMethods.get(rpcPath)?.kind !== 'bidi');
  return single.flatMap(([path]) => ['[]', '{', 'nul', '5', '{"a":1,}'].map((body) => ({ path, body })));
}

/** What an engineer would try: each was sent to etcd 3.6 with curl first. */
export const knownRequests: readonly GatewayRequest[] = [
  ...['', ' ', 'null', '{}', '{"key":"YQ=="}garbage', '{"key":"YQ==","x":{"y":[1,{}]}}'].map((body) => ({
    path: put,
    body,
  })),
  { path: put, body: '{"key":"YQ==","value":"Zm-_"}' },
  { path: put, body: '{"key":"Yg","value":"/+8"}' },
  ...['"Z"', '5', 'null', '[]', '{}', 'true', '"YQ=\\n="'].map((key) => ({ path: put, body: `{"key":${key}}` })),
  ...['1.5', '"1e2"', '99999999999999999999', '"9223372036854775808"', '"x"', '" 1"', '1e400', 'true'].map((lease) => ({
    path: put,
    body: `{"key":"YQ==",\n "lease":${lease}}`,
  })),
  { path: put, body: '{"key":"YQ==","prevKv":"true"}' },
  { path: put, body: '{"key":"YQ==","prevKv":true,"prev_kv":true}' },
  { path: put, body: '{"key":"YQ==","prevKv":true}' },
  { path: put, body: '{"key":"YQ==","lease":0x1}' },
  { path: put, body: `{"x":${'['.repeat(10_000)}` },
  { path: range, body: '{"key":"YQ==","sort_order":"X"}' },
  { path: range, body: '{"key":"YQ==","sort_order":"DESCEND","sortTarget":99}' },
  { path: range, body: '{"key":"AA==","range_end":"AA==","keys_only":true,"sort_order":2}' },
  { path: range, body: '{"key":"YQ==","count_only":true}' },
  { path: txn, body: '{"compare":[{"key":"YQ==","version":"1","value":"YQ=="}]}' },
  {
    path: txn,
    body: '{"compare":[{"key":"YQ==","target":"CREATE","result":"GREATER","create_revision":"0"}],"success":[]}',
  },
  ...['[{}]', '[null]', '{}', '[[]]', '[{"request_put":null}]', '[{"requestDeleteRange":{"key":"Yg=="}}]'].map(
    (success) => ({
      path: txn,
      body: `{"success":${success}}`,
    }),
  ),
  { method: 'GET', path: range, body: '' },
  { method: 'PUT', path: range, body: '{}' },
  ...['/v3', '/v3/', '/v3/kv', '/v3/kv/nothing', '/v3/kv/range/', '/v3/kv/../kv/range', '/v3/kv//range'].map(
    (path) => ({ path, body: '{}' }),
  ),
  ...['/v3beta/kv/range', '/v3/kv/range?key=YQ==', '/v3/kv/rang%65'].map((path) => ({ path, body: '{"key":"YQ=="}' })),
  ...['1', '1S', '0S', '-1S', '1X', '1.5S'].map((timeout) => ({
    path: range,
    body: '{"key":"YQ=="}',
    headers: { 'grpc-timeout': timeout },
  })),
  { path: '/v3/lease/grant', body: '{"ID":7,"TTL":1000}' },
  { path: '/v3/lease/grant', body: '{"ID":"7","TTL":"1000"}' },
  { path: keepAlive, body: '{"ID":"7"}', lines: 1 },
  { path: keepAlive, body: '{"ID":7}\n{"ID":8}{"ID":"7"}', lines: 3 },
  { path: keepAlive, body: '' },
  { path: keepAlive, body: '[]' },
  { path: keepAlive, body: '{"ID":7}xx{"ID":7}' },
  { path: '/v3/lease/revoke', body: '{"ID":"7"}' },
  { path: '/v3/kv/lease/revoke', body: '{"ID":"7"}' },
  { path: '/v3/kv/lease/timetolive', body: '{"ID":"7"}' },
  { path: watch, body: '{"create_request":{"key":"YQ==","start_revision":"1"}}', lines: 2 },
  { path: watch, body: '{"createRequest":{"key":"YQ==","watchId":5}}\n{"cancel_request":{"watch_id":"5"}}', lines: 2 },
  { path: watch, body: '{"create_request":{"key":"YQ=="}}xx', lines: 1 },
  { path: '/v3/maintenance/alarm', body: '{"action":"GET"}' },
  { path: '/v3/auth/authenticate', body: '{"name":"root","password":"x"}' },
  {
    path: '/v3/auth/role/grant',
    body: '{"name":"none","perm":{"permType":"READWRITE","key":"YQ==","range_end":"Yg=="}}',
  },
  { path: '/v3/cluster/member/add', body: '{"peerURLs":["x"]}' },
];
