import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { CuttingProxy, hasPostgres, PostgresCluster } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, inject, test } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import { chunksOf, entry, readBehind, readSnapshot, texts } from '../testing/engine-case.ts';
import type { PostgresEngineOptions } from './postgres-engine.ts';
import type { PostgresTiming } from './postgres-timing.ts';
import { FollowedLog } from './testing/followed-log.ts';
import { OpenedEngines } from './testing/opened-engines.ts';
import { PersistentWriter } from './testing/persistent-writer.ts';

/** A host that is silent, and an answer that does not come, are given up sooner than an operator would want. */
const impatient: Partial<PostgresTiming> = { connectTimeoutMs: 1_500, queryTimeoutMs: 2_000, watchIntervalMs: 100 };

const isHeld = `SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;

const effort = inject('effort');
const lostAnswers = { commit: 5, ci: 20, soak: 200 }[effort];
const cutRounds = { commit: 8, ci: 20, soak: 200 }[effort];
const terminations = { commit: 6, ci: 15, soak: 150 }[effort];
const crashes = { commit: 2, ci: 3, soak: 30 }[effort];

describe.runIf(hasPostgres())('a PostgreSQL engine whose database goes away', () => {
  let cluster: PostgresCluster;
  let proxy: CuttingProxy;
  const opened = new OpenedEngines();
  beforeAll(async () => {
    cluster = await PostgresCluster.create();
    proxy = await CuttingProxy.before(cluster.port);
  });
  afterEach(async () => {
    proxy.restore();
    await opened.closeAll();
  });
  afterAll(async () => {
    await proxy?.close();
    await cluster?.dispose();
  });

  const proxied = (schema: string): PostgresEngineOptions => {
    return { url: `postgres://postgres@127.0.0.1:${proxy.port}/postgres`, schema };
  };

  /** Runs `sql` and holds its locks; gives what lets them go. */
  async function holdLocksOf(sql: string): Promise<() => Promise<void>> {
    const ended = assert.rejects(cluster.query(`BEGIN; ${sql}; SELECT pg_sleep(3600)`), { code: '57P01' });
    while ((await cluster.query(isHeld)).length === 0);
    return async () => {
      await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`);
      await ended;
    };
  }

  test('an append whose answer is cut off after the commit is unknown, and found where it was written', async () => {
    const { engine } = await opened.open(proxied('answer_lost'));
    let tail = logStart;
    for (let round = 0; round < lostAnswers; round++) {
      const text = `marked entry ${round}`;
      const cut = proxy.cutBeforeAnswerTo(text);
      await assert.rejects(engine.append([entry(text)], tail), { name: 'EngineError', code: 'unknown' });
      await cut;
      const expected = nextPosition(tail, entry(text));
      assert.deepEqual(await engine.tail(), expected);
      assert.deepEqual(texts(await readBehind(engine, tail, 1)), [text]);
      await assert.rejects(engine.append([entry(text)], tail), { code: 'conflict', tail: expected });
      tail = expected;
    }
  });

  test('an append that waited when its connection was cut has come to nothing once the tail is told', async () => {
    const { engine } = await opened.open(proxied('still_waiting'));
    const one = await engine.append([entry('one')], logStart);
    const letGo = await holdLocksOf('SELECT FROM still_waiting.head FOR UPDATE');
    const out = assert.rejects(engine.append([entry('two')], one), { code: 'unknown' });
    const isWaiting =
      "SELECT FROM pg_stat_activity WHERE application_name ~ '^tenure append' AND wait_event_type = 'Lock'";
    while ((await cluster.query(isWaiting)).length === 0);
    proxy.cut();
    await out;
    assert.deepEqual(await engine.tail(), one);
    assert.deepEqual(await cluster.query(isWaiting), []);
    assert.equal(
      (await cluster.query(isHeld)).length,
      1,
      'the tail was told while the append could still have gone on',
    );
    await letGo();
    await engine.append([entry('other')], one);
    assert.deepEqual(texts(await readBehind(engine, logStart, 2)), ['one', 'other']);
  });

  test('an append whose answer is lost without a trace is given up as unknown', async () => {
    const { engine } = await opened.open({ ...proxied('no_trace'), timing: impatient });
    const lost = proxy.loseAnswerTo('marked entry');
    await assert.rejects(engine.append([entry('marked entry')], logStart), { code: 'unknown' });
    await lost;
    assert.deepEqual(texts(await readBehind(engine, logStart, 1)), ['marked entry']);
  });

  test('an append that the database refuses is unavailable, with the reason, and has written nothing', async () => {
    const { engine } = await opened.open({ url: cluster.url(), schema: 'refuses' });
    await cluster.query(`CREATE FUNCTION refuses.no() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'the quota of this user is used up'; END $$;
      CREATE TRIGGER no BEFORE INSERT ON refuses.entries EXECUTE FUNCTION refuses.no()`);
    const message = /the quota of this user is used up/;
    await assert.rejects(engine.append([entry('x')], logStart), { code: 'unavailable', message });
    assert.deepEqual(await engine.tail(), logStart);
    await cluster.query('DROP TRIGGER no ON refuses.entries');
    assert.equal((await engine.append([entry('x')], logStart)).index, 1);
  });

  test('under cut connections every acknowledged entry is there once, in order, for followers too', async () => {
    const { engine: writing } = await opened.open(proxied('cuts'));
    const { engine: following, states } = await opened.open(proxied('cuts'));
    const writer = new PersistentWriter(writing);
    const followed = new FollowedLog(following);
    const written = writer.run();
    for (let round = 1; round <= cutRounds; round++) {
      await followed.reached(25 * round);
      proxy.cut();
    }
    writer.stop();
    await written;
    const seen = await followed.until(writer.acknowledged.length);
    assert.deepEqual(texts(seen), writer.acknowledged);
    assert.deepEqual(seen.at(-1)?.position, writer.tail);
    const ups = states.filter((state) => state === 'up').length;
    assert.ok(ups >= cutRounds / 4, `${states.length} changes of state`);
  });

  test('each backend of an engine can be terminated under load', async () => {
    const schema = 'terminated';
    const { engine } = await opened.open({ url: cluster.url(), schema });
    const writer = new PersistentWriter(engine);
    const followed = new FollowedLog(engine);
    const written = writer.run();
    for (let round = 0; round < terminations; round++) {
      await followed.reached(20 * round);
      await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ $1`, [
        round % 2 === 0 ? '^tenure append' : '^tenure read',
      ]);
    }
    writer.stop();
    await written;
    assert.deepEqual(texts(await followed.until(writer.acknowledged.length)), writer.acknowledged);
  });

  test('an immediate shutdown and restart under load loses nothing acknowledged and doubles nothing', async () => {
    const { engine, reached } = await opened.open({ url: cluster.url(), schema: 'crashes' });
    const writer = new PersistentWriter(engine);
    const followed = new FollowedLog(engine);
    const written = writer.run();
    for (let round = 0; round < crashes; round++) {
      await followed.reached(50 * (round + 1));
      await cluster.stop('immediate');
      assert.ok((await reached('down')).length > 0);
      await assert.rejects(engine.tail(), { code: 'unavailable' });
      await assert.rejects(engine.saveSnapshot(logStart, chunksOf('x')), { code: 'unavailable' });
      await cluster.start();
      await reached('up');
    }
    writer.stop();
    await written;
    assert.deepEqual(texts(await followed.until(writer.acknowledged.length)), writer.acknowledged);
    await engine.saveSnapshot(writer.tail, chunksOf('state'));
    assert.deepEqual(await readSnapshot(engine), { index: writer.tail.index, chunks: ['state'] });
  });

  test('a silent network is noticed: the append out is unknown, the next unavailable, and all comes back', async () => {
    const { engine, reached } = await opened.open({ ...proxied('silent'), timing: impatient });
    const one = await engine.append([entry('one')], logStart);
    const follower = engine.follow(one, new AbortController().signal)[Symbol.asyncIterator]();
    const waiting = follower.next();
    proxy.silence();
    await assert.rejects(engine.append([entry('two')], one), { code: 'unknown' });
    await assert.rejects(engine.append([entry('two')], one), { code: 'unavailable' });
    assert.match(await reached('down'), /./);
    proxy.restore();
    await reached('up');
    assert.deepEqual(await engine.tail(), one);
    await engine.append([entry('two again')], one);
    assert.deepEqual(texts((await waiting).value ?? []), ['two again']);
    await follower.return?.();
  });

  test('an append that waits long for the database is waited for', async () => {
    const { engine } = await opened.open({ ...proxied('patience'), timing: { watchIntervalMs: 20 } });
    const letGo = await holdLocksOf('LOCK TABLE patience.head');
    let isOut = true;
    const appending = engine.append([entry('one')], logStart).finally(() => (isOut = false));
    // It is looked after again and again, each time on a connection of its own, and found at work.
    const before = proxy.opened;
    while (isOut && proxy.opened < before + 8) await delay(10);
    assert.ok(isOut, 'the append was given up');
    await letGo();
    assert.equal((await appending).index, 1);
  });

  test('closing does not wait for a database that is away', async () => {
    const { engine, reached } = await opened.open({ ...proxied('closed'), timing: impatient });
    const follower = engine.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
    const ended = assert.rejects(follower.next() as Promise<unknown>, { code: 'closed' });
    proxy.silence();
    const out = assert.rejects(engine.append([entry('x')], logStart), { name: 'EngineError' });
    await reached('down');
    await engine.close();
    await ended;
    await out;
  });
});
