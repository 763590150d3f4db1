import { setTimeout as delay } from 'node:timers/promises';
import { CuttingProxy, hasPostgres, PostgresCluster } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import { chunksOf, entry, readBehind, readSnapshot, texts } from '../testing/engine-case.ts';
import type { PostgresEngineOptions } from './postgres-engine.ts';
import type { PostgresTiming } from './postgres-timing.ts';
import { FollowedLog } from './testing/followed-log.ts';
import { OpenedEngines } from './testing/opened-engines.ts';
import { PersistentWriter } from './testing/persistent-writer.ts';

/** Shorter timeouts for a silent host and a missing response than the defaults. */
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

  /** Runs `sql` and holds its locks; returns a function that releases them. */
  async function holdLocksOf(sql: string): Promise<() => Promise<void>> {
    const ended = cluster.query(`BEGIN; ${sql}; SELECT pg_sleep(3600)`).catch((error: unknown) => error);
    while ((await cluster.query(isHeld)).length === 0);
    return async () => {
      await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`);
      expect(await ended).toMatchObject({ code: '57P01' });
    };
  }

  test('an append whose answer is cut off after the commit is unknown, and is found in the log', async () => {
    const { engine } = await opened.open(proxied('answer_lost'));
    let tail = logStart;
    for (let round = 0; round < lostAnswers; round++) {
      const text = `marked entry ${round}`;
      const cut = proxy.cutBeforeAnswerTo(text);
      await expect(engine.append([entry(text)], tail)).rejects.toMatchObject({ name: 'EngineError', code: 'unknown' });
      await cut;
      const expected = nextPosition(tail, entry(text));
      expect(await engine.tail()).toEqual(expected);
      expect(texts(await readBehind(engine, tail, 1))).toEqual([text]);
      await expect(engine.append([entry(text)], tail)).rejects.toMatchObject({ code: 'conflict', tail: expected });
      tail = expected;
    }
  });

  test('an append that waited when its connection was cut has certainly failed once the tail is known', async () => {
    const { engine } = await opened.open(proxied('still_waiting'));
    const one = await engine.append([entry('one')], logStart);
    const letGo = await holdLocksOf('SELECT FROM still_waiting.head FOR UPDATE');
    const out = engine.append([entry('two')], one).catch((error: unknown) => error);
    const isWaiting =
      "SELECT FROM pg_stat_activity WHERE application_name ~ '^tenure append' AND wait_event_type = 'Lock'";
    while ((await cluster.query(isWaiting)).length === 0);
    proxy.cut();
    expect(await out).toMatchObject({ code: 'unknown' });
    expect(await engine.tail()).toEqual(one);
    expect(await cluster.query(isWaiting)).toEqual([]);
    expect((await cluster.query(isHeld)).length, 'the tail was told while the append could still have gone on').toBe(1);
    await letGo();
    await engine.append([entry('other')], one);
    expect(texts(await readBehind(engine, logStart, 2))).toEqual(['one', 'other']);
  });

  test('an append whose answer is lost silently becomes unknown', async () => {
    const { engine } = await opened.open({ ...proxied('no_trace'), timing: impatient });
    const lost = proxy.loseAnswerTo('marked entry');
    await expect(engine.append([entry('marked entry')], logStart)).rejects.toMatchObject({ code: 'unknown' });
    await lost;
    expect(texts(await readBehind(engine, logStart, 1))).toEqual(['marked entry']);
  });

  test('an append that the database refuses is unavailable, with the reason, and has written nothing', async () => {
    const { engine } = await opened.open({ url: cluster.url(), schema: 'refuses' });
    await cluster.query(`CREATE FUNCTION refuses.no() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'the quota of this user is used up'; END $$;
      CREATE TRIGGER no BEFORE INSERT ON refuses.entries EXECUTE FUNCTION refuses.no()`);
    const message = /the quota of this user is used up/;
    await expect(engine.append([entry('x')], logStart)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(message),
    });
    expect(await engine.tail()).toEqual(logStart);
    await cluster.query('DROP TRIGGER no ON refuses.entries');
    expect((await engine.append([entry('x')], logStart)).index).toBe(1);
  });

  test('under cut connections every acknowledged entry exists once, in order, also for followers', async () => {
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
    expect(texts(seen)).toEqual(writer.acknowledged);
    expect(seen.at(-1)?.position).toEqual(writer.tail);
    const ups = states.filter((state) => state === 'up').length;
    expect(ups, `${states.length} changes of state`).toBeGreaterThanOrEqual(cutRounds / 4);
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
    expect(texts(await followed.until(writer.acknowledged.length))).toEqual(writer.acknowledged);
  });

  test('an immediate shutdown and restart under load loses no acknowledged entry and duplicates none', async () => {
    const { engine, reached } = await opened.open({ url: cluster.url(), schema: 'crashes' });
    const writer = new PersistentWriter(engine);
    const followed = new FollowedLog(engine);
    const written = writer.run();
    for (let round = 0; round < crashes; round++) {
      await followed.reached(50 * (round + 1));
      await cluster.stop('immediate');
      expect((await reached('down')).length).toBeGreaterThan(0);
      await expect(engine.tail()).rejects.toMatchObject({ code: 'unavailable' });
      await expect(engine.saveSnapshot(logStart, chunksOf('x'))).rejects.toMatchObject({ code: 'unavailable' });
      await cluster.start();
      await reached('up');
    }
    writer.stop();
    await written;
    expect(texts(await followed.until(writer.acknowledged.length))).toEqual(writer.acknowledged);
    await engine.saveSnapshot(writer.tail, chunksOf('state'));
    expect(await readSnapshot(engine)).toEqual({ index: writer.tail.index, chunks: ['state'] });
  });

  test('a silent network is detected: the append in progress is unknown, the next unavailable', async () => {
    const { engine, reached } = await opened.open({ ...proxied('silent'), timing: impatient });
    const one = await engine.append([entry('one')], logStart);
    const follower = engine.follow(one, new AbortController().signal)[Symbol.asyncIterator]();
    const waiting = follower.next();
    proxy.silence();
    await expect(engine.append([entry('two')], one)).rejects.toMatchObject({ code: 'unknown' });
    await expect(engine.append([entry('two')], one)).rejects.toMatchObject({ code: 'unavailable' });
    expect(await reached('down')).toMatch(/./);
    proxy.restore();
    await reached('up');
    expect(await engine.tail()).toEqual(one);
    await engine.append([entry('two again')], one);
    expect(texts((await waiting).value ?? [])).toEqual(['two again']);
    await follower.return?.();
  });

  test('a long append is awaited while the database works on it', async () => {
    const { engine } = await opened.open({ ...proxied('patience'), timing: { watchIntervalMs: 20 } });
    const letGo = await holdLocksOf('LOCK TABLE patience.head');
    let isOut = true;
    const appending = engine.append([entry('one')], logStart).finally(() => (isOut = false));
    // It is checked repeatedly, each time on a separate connection, and found active.
    const before = proxy.opened;
    while (isOut && proxy.opened < before + 8) await delay(10);
    expect(isOut, 'the append was given up').toBe(true);
    await letGo();
    expect((await appending).index).toBe(1);
  });

  test('closing does not wait for an unreachable database', async () => {
    const { engine, reached } = await opened.open({ ...proxied('closed'), timing: impatient });
    const follower = engine.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
    const ended = follower.next().catch((error: unknown) => error);
    proxy.silence();
    const out = engine.append([entry('x')], logStart).catch((error: unknown) => error);
    await reached('down');
    await engine.close();
    expect(await ended).toMatchObject({ code: 'closed' });
    expect(await out).toMatchObject({ name: 'EngineError' });
  });
});
