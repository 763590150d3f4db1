import type { GatewayRequest } from './exchange.ts';

/** One origin may call, and two names may be used. etcd takes no origin without a port. */
export const browserOptions = { cors: ['https://a.example:8443'], hostWhitelist: ['localhost', '127.0.0.1'] };

const put = { path: '/v3/kv/put', body: '{"key":"YQ=="}' };
const malformed = { path: '/v3/kv/put', body: 'x' };
const stream = { path: '/v3/watch', body: '{"create_request":{"key":"YQ=="}}', lines: 1 };
const health = { method: 'GET', path: '/health', body: '' } as const;
const preflight = { method: 'OPTIONS', path: '/v3/kv/put', body: '' } as const;

const calls: readonly GatewayRequest[] = [put, malformed, stream];
const origin = (value: string) => ({ origin: value });
const host = (value: string) => ({ host: value });
const askedMethod = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };

/** What programs and pages of the allowed origin send, under names that are in the list and others. */
export const browserRequests: readonly GatewayRequest[] = [
  ...[...calls, health].flatMap((request) => [request, { ...request, headers: origin('https://a.example:8443') }]),
  { ...preflight, headers: { ...origin('https://a.example:8443'), ...askedMethod } },
  { ...preflight, headers: { ...origin('https://b.example:8443'), ...askedMethod } },
  preflight,
  { ...health, headers: origin('https://b.example:8443') },
  ...[
    'localhost',
    'localhost:99',
    '127.0.0.1:1',
    'evil.example',
    'evil.example:2379',
    'localhost.evil.example',
  ].flatMap((name) => [put, health, preflight].map((request) => ({ ...request, headers: host(name) }))),
  ...['localhost.', 'LOCALHOST', '[::1]', '[::1]:2379'].map((name) => ({ ...put, headers: host(name) })),
  { ...put, headers: { ...origin('https://a.example:8443'), ...host('evil.example') } },
];

/** What pages of another origin send: etcd serves it, and Tenure refuses it. */
export const foreignRequests: readonly GatewayRequest[] = [
  'https://b.example:8443',
  'https://A.example:8443',
  'null',
].flatMap((name) => calls.map((request) => ({ ...request, headers: origin(name) })));
