import assert from 'node:assert/strict';
import { hasPostgres, PostgresCluster, PostgresPair } from '@tenure/test-support';
import { afterEach, describe, test } from 'vitest';
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

  test('passes over a standby, and a server that is read-only', async () => {
    const { primary, standby, url } = await pair();
    const { engine } = await opened.open({ url });
    await engine.append([entry('on the primary')], logStart);
    assert.deepEqual(await primary.query('SELECT index FROM tenure.head'), [{ index: '1' }]);
    await assert.rejects(opened.open({ url: standby.url() }), { code: 'unavailable', message: /standby.*primary/ });
    await primary.query('ALTER SYSTEM SET default_transaction_read_only = on');
    await primary.query('SELECT pg_reload_conf()');
    await assert.rejects(opened.open({ url }), { code: 'unavailable', message: /standby.*read-only/ });
  });

  test('a synchronous pair: the primary dies under load, the standby takes over, nothing is lost', async () => {
    const databases = await pair();
    const { primary, standby, url } = databases;
    await databases.makeSynchronous();
    const { engine, notices } = await opened.open({ url });
    assert.doesNotMatch(notices.join(), /synchron/);
    const writer = new PersistentWriter(engine);
    const followed = new FollowedLog(engine);
    const written = writer.run();
    await followed.reached(200);
    await primary.stop('immediate');
    await standby.promote();
    await followed.reached(writer.acknowledged.length + 50);
    writer.stop();
    await written;
    assert.deepEqual(texts(await followed.until(writer.acknowledged.length)), writer.acknowledged);
  });

  test('an asynchronous pair that loses a suffix: followers stop as diverged, and appends are conflicts', async () => {
    const { primary, standby, url } = await pair();
    const { engine, notices } = await opened.open({ url });
    assert.match(notices.join(), /synchronous_standby_names is empty/);
    const kept = await engine.append(entries(10, 100), logStart);
    while ((await standby.query('SELECT FROM tenure.head WHERE index = 10').catch(() => [])).length === 0);
    await standby.query('SELECT pg_wal_replay_pause()');
    const receiver = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = $1';
    await primary.query(`ALTER SYSTEM SET max_wal_senders = 0`);
    await primary.query(receiver, ['walsender']);
    // The standby is cut off for good: a stopped sender and a paused replay cannot take what comes now.
    await standby.query(`ALTER SYSTEM SET primary_conninfo = ''`);
    await standby.query('SELECT pg_reload_conf()');
    while ((await primary.query('SELECT FROM pg_stat_replication')).length > 0);
    const lost = await engine.append(entries(5, 100), kept);
    const seen = new FollowedLog(engine);
    await seen.reached(15);
    await primary.stop('immediate');
    await standby.promote();
    await assert.rejects(seen.reached(16), { name: 'EngineError', code: 'diverged', message: /ends at entry 10.*15/ });
    await assert.rejects(engine.append([entry('x')], lost), { code: 'conflict', tail: kept });
    await assert.rejects(firstChunk(engine, lost), { code: 'diverged' });
    const other = await engine.append(entries(6, 200), kept);
    await assert.rejects(firstChunk(engine, lost), { code: 'diverged', message: /another entry 15/ });
    assert.equal((await readBehind(engine, kept, 6)).at(-1)?.position.hash, other.hash);
  });

  test('a commit whose wait for the standby is cancelled is unknown, and not read before it is safe', async () => {
    const databases = await pair();
    const { primary, standby } = databases;
    await databases.makeSynchronous();
    const { engine, reached } = await opened.open({ url: primary.url(), timing: { queryTimeoutMs: 2_000 } });
    const one = await engine.append([entry('one')], logStart);
    await standby.stop();
    const out = assert.rejects(engine.append([entry('two')], one), { code: 'unknown', message: /warning/ });
    const waiting = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
    while ((await primary.query(waiting)).length === 0);
    await out;
    // It is committed and visible, but only on the primary: the engine does not answer until that has changed.
    assert.deepEqual(await primary.query('SELECT index FROM tenure.head'), [{ index: '2' }]);
    const read = readBehind(engine, one, 1);
    await assert.rejects(engine.tail(), { code: 'unavailable' });
    assert.match(await reached('down'), /./);
    await standby.start();
    assert.deepEqual(texts(await read), ['two']);
  });
});
