import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { type TestServer, startTestServer } from '@tenure/test-support';
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createLogger } from '../logging/logger.ts';
import type { HealthSource } from './health-checks.ts';
import { createHttpHandler } from './http-handler.ts';
import { type MetricSource, ServerMetrics } from './server-metrics.ts';

let alarms: ('nospace' | 'corrupt')[] = [];
let leader = true;
let problem: string | undefined;
let readError: Error | undefined;
const reads: boolean[] = [];

const health: HealthSource = {
  alarms: () => alarms,
  hasLeader: () => leader,
  problem: () => problem,
  read: async ({ serializable }) => {
    reads.push(serializable);
    if (readError !== undefined && !serializable) throw readError;
  },
};
const source: MetricSource = {
  leasesInMemory: () => 11,
  leasesCheckpointed: () => 12,
  watchers: () => 13,
  watchStreams: () => 14,
  keys: () => 15,
  revision: () => 16,
  compactRevision: () => 17,
  stateBytes: () => 18,
  logBytes: () => 19,
  appliedIndex: () => 20,
  isLeader: () => true,
};
const metrics = new ServerMetrics({ version: '9.9.9', source, quotaBytes: 21 });
const log = createLogger({ name: 't', logLevel: 'error' }, { write: () => undefined });
let server: TestServer;
let url: string;

beforeAll(async () => {
  const versions = { etcd: '3.6.0', tenure: '9.9.9' };
  const handler = createHttpHandler({ health, metrics, log, versions, openApi: async () => '{"openapi":"3.0.3"}' });
  server = await startTestServer({}, {}, handler);
  url = `http://127.0.0.1:${server.port}`;
});
afterAll(async () => {
  metrics.close();
  await server.transport.close({ graceMs: 100 });
});
beforeEach(() => {
  alarms = [];
  leader = true;
  problem = undefined;
  readError = undefined;
  reads.length = 0;
});

async function get(path: string): Promise<{ status: number; body: string }> {
  const response = await fetch(url + path);
  return { status: response.status, body: await response.text() };
}

describe('/health', () => {
  const well = { status: 200, body: '{"health":"true","reason":""}' };
  const sick = (reason: string) => ({ status: 503, body: JSON.stringify({ health: 'false', reason }) });

  test('is true after a linearizable read', async () => {
    expect(await get('/health')).toEqual(well);
    expect(reads).toEqual([false]);
  });

  test('an alarm makes it false, unless it is excluded', async () => {
    alarms = ['nospace'];
    expect(await get('/health')).toEqual(sick('ALARM NOSPACE'));
    expect(await get('/health?exclude=CORRUPT')).toEqual(sick('ALARM NOSPACE'));
    expect(await get('/health?exclude=NOSPACE')).toEqual(well);
    alarms = ['nospace', 'corrupt'];
    expect(await get('/health?exclude=NOSPACE')).toEqual(sick('ALARM CORRUPT'));
    expect(await get('/health?exclude=NOSPACE&exclude=CORRUPT')).toEqual(well);
  });

  test('serializable asks for neither leader nor linearizable read', async () => {
    leader = false;
    expect(await get('/health')).toEqual(sick('RAFT NO LEADER'));
    expect(await get('/health?serializable=true')).toEqual(well);
    problem = 'the database cannot be reached';
    expect(await get('/health')).toEqual(sick('RAFT NO LEADER'));
    leader = true;
    readError = new GrpcStatus(GrpcCode.unavailable, 'etcdserver: request timed out', problem);
    expect(await get('/health')).toEqual(sick('RANGE ERROR:etcdserver: request timed out'));
    expect((await get('/readyz')).body).toContain(`[-]linearizable_read failed: ${problem}`);
    readError = new Error('connect ECONNREFUSED 10.0.0.1:5432');
    expect(await get('/health')).toEqual(sick('RANGE ERROR:internal error'));
    expect(await get('/health?serializable=true')).toEqual(well);
  });
});

describe('/livez and /readyz', () => {
  test('say ok, and more when asked', async () => {
    expect(await get('/livez')).toEqual({ status: 200, body: 'ok\n' });
    expect(await get('/readyz')).toEqual({ status: 200, body: 'ok\n' });
    expect(await get('/livez?verbose')).toEqual({ status: 200, body: '[+]serializable_read ok\nok\n' });
    const all = '[+]data_corruption ok\n[+]serializable_read ok\n[+]leader ok\n[+]linearizable_read ok\nok\n';
    expect(await get('/readyz?verbose')).toEqual({ status: 200, body: all });
  });

  test('a server that cannot serve is alive but not ready', async () => {
    readError = new GrpcStatus(GrpcCode.unavailable, 'etcdserver: no leader');
    expect((await get('/livez')).status).toBe(200);
    const { status, body } = await get('/readyz');
    expect(status).toBe(503);
    expect(body).toContain('[-]linearizable_read failed: etcdserver: no leader');
    expect(body).toContain('[+]serializable_read ok');
    expect((await get('/readyz?exclude=linearizable_read')).status).toBe(200);
    expect((await get('/readyz?allowlist=serializable_read')).status).toBe(200);
    expect((await get('/readyz/linearizable_read')).status).toBe(503);
    expect((await get('/readyz/serializable_read')).status).toBe(200);
    expect((await get('/readyz/none_such')).status).toBe(404);
  });

  test('a server without a leader says so, and why, without waiting for a read', async () => {
    leader = false;
    problem = 'the leader cannot be reached';
    expect((await get('/livez')).status).toBe(200);
    const { status, body } = await get('/readyz');
    expect(status).toBe(503);
    expect(body).toContain(`[-]leader failed: ${problem}`);
    expect(body).toContain(`[-]linearizable_read failed: ${problem}`);
    expect(reads).toEqual([true, true]);
    problem = undefined;
    expect((await get('/readyz/leader')).body).toContain('[-]leader failed: etcdserver: no leader');
  });

  test('a full store is ready, a corrupt one is not', async () => {
    alarms = ['nospace'];
    expect((await get('/readyz')).status).toBe(200);
    alarms = ['corrupt'];
    expect((await get('/livez')).status).toBe(200);
    expect(await get('/readyz')).toMatchObject({ status: 503 });
    expect((await get('/readyz')).body).toContain('[-]data_corruption failed: alarm activated: CORRUPT');
    expect((await get('/readyz?exclude=data_corruption')).status).toBe(200);
  });
});

test('/version names the API version and the server version', async () => {
  const { status, body } = await get('/version');
  expect(status).toBe(200);
  expect(JSON.parse(body)).toEqual({ etcdserver: '3.6.0', etcdcluster: '3.6.0', storage: '3.6.0', tenure: '9.9.9' });
});

test('/openapi.json is the description of the JSON gateway', async () => {
  const { status, body } = await get('/openapi.json');
  expect([status, body]).toEqual([200, '{"openapi":"3.0.3"}']);
});

test('a path that is not there answers 404 in JSON', async () => {
  const { status, body } = await get('/nothing');
  expect(status).toBe(404);
  expect(JSON.parse(body)).toEqual({ error: 'there is nothing at this path', code: 404 });
});

test('a path that is not there answers 404 to every method', async () => {
  for (const path of ['/nothing', '/v3alpha/kv/range', '/healthy', '/livezz']) {
    const response = await fetch(`${url}${path}`, { method: 'POST', body: '{}' });
    expect([path, response.status]).toEqual([path, 404]);
  }
});

test('every method that could change state is refused, and its body is not waited for', async () => {
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const response = await fetch(`${url}/health`, {
      method,
      ...(method === 'POST' ? { body: 'x'.repeat(100_000) } : {}),
    });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, HEAD');
    expect(JSON.parse(await response.text())).toMatchObject({ code: 405 });
  }
});

test('HEAD answers like GET without the body', async () => {
  const response = await fetch(`${url}/version`, { method: 'HEAD' });
  expect(response.status).toBe(200);
  expect(Number(response.headers.get('content-length'))).toBeGreaterThan(20);
  expect(await response.text()).toBe('');
});

test.each([
  '//',
  '/%',
  '/health?%',
  '/health?exclude',
  '/%00',
  'http://elsewhere/health',
  '*',
  '/health;x',
  '/livez/',
  '/livez/a/b',
])('the odd target %s gets an answer', async (path) => {
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const port = Number(new URL(url).port);
    httpRequest(
      { host: '127.0.0.1', port, path, headers: { host: 'evil.example', origin: 'http://evil.example' } },
      (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      },
    )
      .on('error', reject)
      .end();
  });
  expect([200, 404]).toContain(status);
});

test('the logged error is not part of the response', async () => {
  const broken: HealthSource = {
    ...health,
    alarms: () => {
      throw new Error('secret');
    },
  };
  const versions = { etcd: '', tenure: '' };
  const handler = createHttpHandler({ health: broken, metrics, log, versions, openApi: async () => '{}' });
  const other = await startTestServer({}, {}, handler);
  const response = await fetch(`http://127.0.0.1:${other.port}/health`);
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('secret');
  await other.transport.close({ graceMs: 100 });
});

describe('/metrics', () => {
  async function metric(name: string): Promise<number> {
    const { body } = await get('/metrics');
    const line = body.split('\n').find((each) => each.startsWith(`${name} `));
    return Number(line?.slice(name.length + 1));
  }

  test('counts what the server reports', async () => {
    const lease = { id: 1n, ttlMs: 1, label: '', renewIndex: 1, liveEpoch: 1, deadlineMs: undefined };
    metrics.leasesChanged([
      { kind: 'granted', lease },
      { kind: 'granted', lease },
      { kind: 'checkpointed', lease },
      { kind: 'renewed', lease },
      { kind: 'removed', id: 1n, cause: 'revoked' },
      { kind: 'removed', id: 1n, cause: 'expired' },
    ]);
    metrics.leaseRenewed(100);
    metrics.leaseExpired(12);
    metrics.leaseExpired(-1);
    metrics.appended({ entries: 1, commands: 40, bytes: 5000, durationMs: 2 });
    metrics.applied(0.2);
    metrics.snapshotSaved(300);
    expect(await metric('tenure_lease_granted_total')).toBe(2);
    expect(await metric('tenure_lease_revoked_total')).toBe(1);
    expect(await metric('tenure_lease_renewed_total')).toBe(100);
    expect(await metric('tenure_lease_checkpointed_total')).toBe(1);
    expect(await metric('tenure_lease_expired_total')).toBe(2);
    expect(await metric('tenure_lease_expiry_lag_seconds_count')).toBe(2);
    expect(await metric('tenure_lease_expiry_lag_seconds_sum')).toBeCloseTo(0.012, 6);
    expect(await metric('tenure_log_entries_total')).toBe(1);
    expect(await metric('tenure_log_append_batch_commands_sum')).toBe(40);
    expect(await metric('tenure_log_append_batch_bytes_sum')).toBe(5000);
    expect(await metric('tenure_log_append_duration_seconds_sum')).toBeCloseTo(0.002, 6);
    expect(await metric('tenure_apply_duration_seconds_count')).toBe(1);
    expect(await metric('tenure_snapshot_save_duration_seconds_sum')).toBeCloseTo(0.3, 6);
  });

  test('reads the gauges at the scrape, and a second scrape counts nothing twice', async () => {
    const names = [
      'leases_in_memory',
      'leases_checkpointed',
      'watchers',
      'watch_streams',
      'keys',
      'revision',
      'compact_revision',
    ];
    const more = ['state_bytes', 'log_bytes', 'applied_index', 'quota_bytes', 'is_leader'];
    const values: number[] = [];
    for (const name of [...names, ...more]) values.push(await metric(`tenure_${name}`));
    expect(values).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 1]);
    metrics.leaseRenewed();
    const before = await metric('tenure_lease_renewed_total');
    expect(await metric('tenure_lease_renewed_total')).toBe(before);
  });

  test('has the event loop, the process and the build, each family once', async () => {
    const { body } = await get('/metrics');
    expect(body).toMatch(/^tenure_event_loop_delay_seconds\{quantile="0.99"\} [\d.e-]+$/m);
    expect(body).toContain(`tenure_build_info{version="9.9.9",node="${process.version}"} 1`);
    expect(body).toContain('process_resident_memory_bytes');
    const families = body.split('\n').filter((line) => line.startsWith('# TYPE '));
    expect(new Set(families).size).toBe(families.length);
  });

  test('shows a blocked event loop', async () => {
    await get('/metrics');
    // The monitor's own timer has to start before the block.
    await new Promise((resolve) => setTimeout(resolve, 30));
    const until = performance.now() + 200;
    while (performance.now() < until);
    await new Promise((resolve) => setTimeout(resolve, 30));
    const { body } = await get('/metrics');
    const worst = /^tenure_event_loop_delay_seconds\{quantile="1"\} (.*)$/m.exec(body)?.[1];
    expect(Number(worst)).toBeGreaterThan(0.1);
  });
});
