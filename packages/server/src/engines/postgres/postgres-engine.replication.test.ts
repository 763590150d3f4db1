import { hasPostgres, PostgresCluster, PostgresPair } from '@tenure/test-support';
import { afterEach, describe, expect, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import { entries, entry, firstChunk, readBehind, texts } from '../testing/engine-case.ts';
import { FollowedLog } from './testing/followed-log.ts';
import { OpenedEngines } from './testing/opened-engines.ts';
import { PersistentWriter } from './testing/persistent-writer.ts';

describe.runIf(hasPostgres())('a PostgreSQL engine on several hosts', () => {
  const opened = new OpenedEngines();
  const clusters: PostgresCluster[] = [];
  afterEach(async () => {
    await opened.closeAll();
    await Promise.all(clusters.splice(0).map((cluster) => cluster.dispose()));
  });

  async function pair(): Promise<PostgresPair> {
    const made = await PostgresPair.create();
    clusters.push(made.primary, made.standby);
    return made;
  }

  test('skips a standby, and a server that is read-only', async () => {
    const { primary, standby, url } = await pair();
    const { engine } = await opened.open({ url });
    await engine.append([entry('on the primary')], logStart);
    expect(await primary.query('SELECT index FROM tenure.head')).toEqual([{ index: '1' }]);
    await expect(opened.open({ url: standby.url() })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/standby.*primary/),
    });
    await primary.query('ALTER SYSTEM SET default_transaction_read_only = on');
    await primary.query('SELECT pg_reload_conf()');
    await expect(opened.open({ url })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/standby.*read-only/),
    });
  });

  test('a synchronous pair: the primary dies under load, the standby takes over, no entry is lost', async () => {
    const databases = await pair();
    const { primary, standby, url } = databases;
    await databases.makeSynchronous();
    const { engine, notices } = await opened.open({ url });
    expect(notices.join()).not.toMatch(/synchron/);
    const writer = new PersistentWriter(engine);
    const followed = new FollowedLog(engine);
    const written = writer.run();
    await followed.reached(200);
    await primary.stop('immediate');
    await standby.promote();
    await followed.reached(writer.acknowledged.length + 50);
    writer.stop();
    await written;
    expect(texts(await followed.until(writer.acknowledged.length))).toEqual(writer.acknowledged);
  });

  test('an asynchronous pair that loses a suffix: followers stop as diverged, and appends are conflicts', async () => {
    const { primary, standby, url } = await pair();
    const { engine, notices } = await opened.open({ url });
    expect(notices.join()).toMatch(/synchronous_standby_names is empty/);
    const kept = await engine.append(entries(10, 100), logStart);
    while ((await standby.query('SELECT FROM tenure.head WHERE index = 10').catch(() => [])).length === 0);
    await standby.query('SELECT pg_wal_replay_pause()');
    const receiver = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = $1';
    await primary.query(`ALTER SYSTEM SET max_wal_senders = 0`);
    await primary.query(receiver, ['walsender']);
    // The standby is cut off permanently: a stopped sender and a paused replay cannot receive later entries.
    await standby.query(`ALTER SYSTEM SET primary_conninfo = ''`);
    await standby.query('SELECT pg_reload_conf()');
    while ((await primary.query('SELECT FROM pg_stat_replication')).length > 0);
    const lost = await engine.append(entries(5, 100), kept);
    const seen = new FollowedLog(engine);
    await seen.reached(15);
    await primary.stop('immediate');
    await standby.promote();
    await expect(seen.reached(16)).rejects.toMatchObject({
      name: 'EngineError',
      code: 'diverged',
      message: expect.stringMatching(/ends at entry 10.*15/),
    });
    await expect(engine.append([entry('x')], lost)).rejects.toMatchObject({ code: 'conflict', tail: kept });
    await expect(firstChunk(engine, lost)).rejects.toMatchObject({ code: 'diverged' });
    const other = await engine.append(entries(6, 200), kept);
    await expect(firstChunk(engine, lost)).rejects.toMatchObject({
      code: 'diverged',
      message: expect.stringMatching(/another entry 15/),
    });
    expect((await readBehind(engine, kept, 6)).at(-1)?.position.hash).toBe(other.hash);
  });

  test('a commit whose wait for the standby is cancelled is unknown, and not read before it is safe', async () => {
    const databases = await pair();
    const { primary, standby } = databases;
    await databases.makeSynchronous();
    const { engine, reached } = await opened.open({ url: primary.url(), timing: { queryTimeoutMs: 2_000 } });
    const one = await engine.append([entry('one')], logStart);
    await standby.stop();
    const out = engine.append([entry('two')], one).catch((error: unknown) => error);
    const waiting = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
    while ((await primary.query(waiting)).length === 0);
    expect(await out).toMatchObject({
      code: 'unknown',
      message: expect.stringMatching(/warning/),
    });
    // It is committed and visible, but only on the primary: the engine does not answer until that has changed.
    expect(await primary.query('SELECT index FROM tenure.head')).toEqual([{ index: '2' }]);
    const read = readBehind(engine, one, 1);
    await expect(engine.tail()).rejects.toMatchObject({ code: 'unavailable' });
    expect(await reached('down')).toMatch(/./);
    await standby.start();
    expect(texts(await read)).toEqual(['two']);
  });
});
