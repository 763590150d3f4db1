import { hasPgbouncer, hasPostgres, PgBouncer, type PoolMode, PostgresCluster } from '@tenure/test-support';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import { entry, readBehind } from '../testing/engine-case.ts';
import { OpenedEngines } from './testing/opened-engines.ts';

const canRun = hasPostgres() && hasPgbouncer();

describe.skipIf(!canRun)('the engine postgres behind a pooler', () => {
  let cluster: PostgresCluster;
  const opened = new OpenedEngines();
  const bouncers: PgBouncer[] = [];
  beforeAll(async () => {
    cluster = await PostgresCluster.create();
  });
  afterEach(async () => {
    await opened.closeAll();
    await Promise.all(bouncers.splice(0).map((bouncer) => bouncer.stop()));
  });
  afterAll(() => cluster?.dispose());

  async function bouncer(mode: PoolMode, more: readonly string[] = []): Promise<string> {
    const started = await PgBouncer.start(cluster, 'postgres', mode, more);
    bouncers.push(started);
    return started.url;
  }

  const refusal = {
    code: 'unusable',
    message: expect.stringMatching(
      /127\.0\.0\.1:\d+: a pooler gives .* connect to the database directly, or set pool_mode = session/,
    ),
  };

  test.each([
    ['transaction', []],
    ['transaction', ['server_round_robin = 1']],
    ['transaction', ['max_client_conn = 50', 'min_pool_size = 4', 'server_round_robin = 1']],
    ['statement', []],
  ] as const)('that pools by %s (%j) is refused, and nothing was made in the database', async (mode, more) => {
    const url = await bouncer(mode, more);
    for (const schema of ['pooled', 'pooled_again'])
      await expect(opened.open({ url, schema })).rejects.toMatchObject(refusal);
    expect(await cluster.query(`SELECT FROM pg_namespace WHERE nspname LIKE 'pooled%'`)).toEqual([]);
  });

  test('that pools by transaction is refused while others use it', async () => {
    const url = await bouncer('transaction');
    const others = [new Client({ connectionString: url }), new Client({ connectionString: url })];
    for (const other of others) await other.connect();
    let over = false;
    const busy = others.map(async (other) => {
      while (!over) await other.query('SELECT pg_sleep(0.001)');
    });
    try {
      for (let tries = 0; tries < 10; tries++) {
        await expect(opened.open({ url, schema: 'busy' })).rejects.toMatchObject(refusal);
      }
    } finally {
      over = true;
      await Promise.all(busy);
      await Promise.all(others.map((other) => other.end()));
    }
  });

  test('no setting of a session has reached another one', async () => {
    const url = await bouncer('transaction', ['server_reset_query_always = 0', 'default_pool_size = 1']);
    await expect(opened.open({ url, schema: 'leaky' })).rejects.toMatchObject(refusal);
    const next = new Client({ connectionString: url });
    await next.connect();
    const { rows } = await next.query(`SELECT current_setting('enable_seqscan') AS scans`);
    await next.end();
    expect(rows).toEqual([{ scans: 'on' }]);
  });

  test.each([3, 4])('that pools by session and has %i connections serves one server', async (size) => {
    const url = await bouncer('session', [`default_pool_size = ${size}`]);
    const { engine } = await opened.open({ url, schema: `small_${size}` });
    const end = await engine.append([entry('a')], logStart);
    expect(await engine.tail()).toEqual(end);
    await engine.saveSnapshot(
      end,
      (async function* () {
        yield Buffer.from('state');
      })(),
    );
    await engine.trim(end.index);
    expect((await engine.loadSnapshot())?.position).toEqual(end);
  });

  test('that pools by session and lets in no more clients than a server needs serves it', async () => {
    const url = await bouncer('session', ['max_client_conn = 3']);
    const { engine } = await opened.open({ url, schema: 'few_clients' });
    const end = await engine.append([entry('a')], logStart);
    expect(await engine.tail()).toEqual(end);
  });

  test('that pools by transaction and has one connection is refused', async () => {
    const url = await bouncer('transaction', ['default_pool_size = 1']);
    await expect(opened.open({ url, schema: 'single' })).rejects.toMatchObject(refusal);
  });

  test('that pools by session serves several servers, with appends, notices and snapshots', async () => {
    const url = await bouncer('session');
    const { engine: one } = await opened.open({ url, schema: 'sessions' });
    const { engine: other } = await opened.open({ url, schema: 'sessions' });
    let end = await one.append([entry('a'), entry('b')], logStart);
    end = await other.append([entry('c')], end);
    expect(await readBehind(one, logStart, 3)).toHaveLength(3);
    await one.saveSnapshot(
      end,
      (async function* () {
        yield Buffer.from('state');
      })(),
    );
    expect((await other.loadSnapshot())?.position).toEqual(end);
    await other.trim(end.index);
    await expect(other.append([entry('d')], logStart)).rejects.toMatchObject({ code: 'conflict' });
    await one.append([entry('d')], end);
  });
});

describe.skipIf(!hasPostgres())('the engine postgres', () => {
  test('works where a backslash in a literal escapes by default', async () => {
    const cluster = await PostgresCluster.create({ standard_conforming_strings: 'off' });
    const opened = new OpenedEngines();
    try {
      const { engine } = await opened.open({ url: cluster.url(), schema: 'escaped' });
      expect(await engine.tail()).toEqual(logStart);
      const end = await engine.append([entry('a')], logStart);
      expect(await engine.tail()).toEqual(end);
    } finally {
      await opened.closeAll();
      await cluster.dispose();
    }
  });
});
