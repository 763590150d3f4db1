import { hasPostgres, PostgresCluster } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import type { Position } from '../log-engine.ts';
import { entry, readBehind, texts } from '../testing/engine-case.ts';
import { OpenedEngines } from './testing/opened-engines.ts';

const rounds = { commit: 200, ci: 500, soak: 5_000 }[inject('effort')];
const deadVersions = { commit: 2_000, ci: 5_000, soak: 20_000 }[inject('effort')];

describe.runIf(hasPostgres())('several PostgreSQL engines on one log', () => {
  let cluster: PostgresCluster;
  const opened = new OpenedEngines();
  beforeAll(async () => {
    cluster = await PostgresCluster.create();
  });
  afterEach(() => opened.closeAll());
  afterAll(() => cluster?.dispose());

  test('of two that append at one position exactly one wins, each time, and both read the same', async () => {
    const options = { url: cluster.url(), schema: 'race' };
    const { engine: one } = await opened.open(options);
    const { engine: other } = await opened.open(options);
    let after: Position = logStart;
    const won: string[] = [];
    for (let round = 0; round < rounds; round++) {
      // Batches of several entries, so that the loser's entries cannot be in between.
      const batches = ['one', 'other'].map((name) => [`${name} ${round}`, `${name} ${round} more`]);
      const [first, second] = batches.map((batch) => batch.map(entry));
      const outcomes = await Promise.allSettled([one.append(first!, after), other.append(second!, after)]);
      const winner = outcomes.findIndex(({ status }) => status === 'fulfilled');
      const [won1, lost] = winner === 0 ? outcomes : outcomes.toReversed();
      if (won1?.status !== 'fulfilled') throw new Error(`round ${round}: both have lost`);
      expect(lost, `round ${round}`).toMatchObject({
        status: 'rejected',
        reason: { name: 'EngineError', code: 'conflict', tail: won1.value },
      });
      after = won1.value;
      won.push(...batches[winner]!);
    }
    expect(after.index).toBe(2 * rounds);
    for (const engine of [one, other]) expect(texts(await readBehind(engine, logStart, 2 * rounds))).toEqual(won);
  });

  test('a follower in another server hears of an append by notification, or else by its poll', async () => {
    const options = { url: cluster.url(), schema: 'heard' };
    const { engine: writer } = await opened.open(options);
    // The two cases disable the respective other way of notification.
    const { engine: notified } = await opened.open({ ...options, timing: { pollIntervalMs: 3_600_000 } });
    const { engine: polling } = await opened.open({ ...options, timing: { pollIntervalMs: 20 } });
    const signal = new AbortController().signal;
    const followers = [notified, polling].map((engine) => engine.follow(logStart, signal)[Symbol.asyncIterator]());
    const [byNotice, byPoll] = followers as [(typeof followers)[0], (typeof followers)[0]];
    let tail = logStart;
    const hear = async (word: string, ...by: typeof followers): Promise<void> => {
      const waiting = by.map((follower) => follower.next());
      tail = await writer.append([entry(word)], tail);
      for (const heard of waiting) expect(texts((await heard).value ?? [])).toEqual([word]);
    };
    for (let at = 0; at < 20; at++) await hear(`notified ${at}`, byNotice, byPoll);
    // The reader no longer listens, and no server notifies it.
    await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`);
    await hear('on a new session', byNotice, byPoll);
    await byNotice.return?.();
    await cluster.query('ALTER FUNCTION pg_notify(text, text) RENAME TO pg_notify_kept');
    await cluster.query(`CREATE FUNCTION pg_catalog.pg_notify(text, text) RETURNS void LANGUAGE sql AS ''`);
    try {
      for (let at = 0; at < 4; at++) await hear(`polled ${at}`, byPoll);
    } finally {
      await cluster.query('DROP FUNCTION pg_catalog.pg_notify(text, text)');
      await cluster.query('ALTER FUNCTION pg_notify_kept(text, text) RENAME TO pg_notify');
    }
    await byPoll.return?.();
  });

  test('a follower returns a reported entry if its hash follows, and each entry once', async () => {
    const options = { url: cluster.url(), schema: 'told' };
    const { engine: writer } = await opened.open(options);
    const { engine: reader } = await opened.open(options);
    const follower = reader.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
    const first = await writer.append([entry('first')], logStart);
    expect(texts((await follower.next()).value ?? [])).toEqual(['first']);
    const waiting = follower.next();
    const second = nextPosition(first, entry('second'));
    // Neither another entry at this position nor one after a gap is accepted as the next one.
    reader.lookNow?.({ position: second, bytes: entry('another') });
    reader.lookNow?.({ position: nextPosition(second, entry('third')), bytes: entry('third') });
    reader.lookNow?.({ position: second, bytes: entry('second') });
    // It is not in the database yet, so that it can come from here alone.
    expect(texts((await waiting).value ?? [])).toEqual(['second']);
    const tail = await writer.append([entry('second')], first);
    const rest = follower.next();
    reader.lookNow?.({ position: second, bytes: entry('second') });
    await writer.append([entry('third')], tail);
    expect(texts((await rest).value ?? [])).toEqual(['third']);
    await follower.return?.();
  });

  test('eight engines that start at once create one schema, and one log', async () => {
    const options = { url: cluster.url(), schema: 'started_at_once' };
    const engines = await Promise.all(Array.from({ length: 8 }, () => opened.open(options)));
    const outcomes = await Promise.allSettled(engines.map(({ engine }) => engine.append([entry('x')], logStart)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBe(1);
    const heads = await cluster.query('SELECT index FROM started_at_once.head');
    expect(heads).toEqual([{ index: '1' }]);
    expect((await cluster.query('SELECT version FROM started_at_once.meta')).length).toBe(1);
  });

  test('logs in two schemas of one database are independent', async () => {
    const { engine: one } = await opened.open({ url: cluster.url(), schema: 'cluster_a' });
    const { engine: other } = await opened.open({ url: cluster.url(), schema: 'cluster_b' });
    const end = await one.append([entry('a'), entry('b')], logStart);
    expect(await other.tail()).toEqual(logStart);
    await other.append([entry('other')], logStart);
    expect(await one.tail()).toEqual(end);
    expect(texts(await readBehind(other, logStart, 1))).toEqual(['other']);
  });

  test('an append reads few pages also while a long transaction keeps every dead version of the head', async () => {
    const options = { url: cluster.url(), schema: 'long_backup' };
    let tail: Position = logStart;
    const pagesRead = async (): Promise<number> => {
      const columns = ['heap_blks_read', 'heap_blks_hit', 'idx_blks_read', 'idx_blks_hit'].join(' + ');
      const read = `SELECT (${columns})::int AS pages FROM pg_statio_user_tables`;
      const [row] = await cluster.query(`${read} WHERE schemaname = 'long_backup' AND relname = 'head'`);
      return row?.['pages'] as number;
    };
    /** The pages read by each of these appends, all in one session, which keeps its first query plan. */
    const pagesOfEach = async (count: number): Promise<number> => {
      const before = await pagesRead();
      const { engine } = await opened.open(options);
      for (let at = 0; at < count; at++) tail = await engine.append([entry('x')], tail);
      await engine.close();
      // A session reports its statistics when it ends.
      while ((await cluster.query(`SELECT FROM pg_stat_activity WHERE application_name ~ '^tenure'`)).length > 0);
      return ((await pagesRead()) - before) / count;
    };
    await pagesOfEach(1);
    // The planner believes that the table is small, as after the first autovacuum.
    await cluster.query('VACUUM ANALYZE long_backup.head');
    const alone = await pagesOfEach(100);
    await cluster.query('VACUUM ANALYZE long_backup.head');
    const backupEnds = cluster.query('SELECT pg_sleep(3600) FROM long_backup.head').catch((error: unknown) => error);
    try {
      while ((await cluster.query(`SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'`)).length === 0);
      const beside = await pagesOfEach(deadVersions);
      expect(beside, `an append reads ${alone} pages, and ${beside} among dead versions`).toBeLessThan(2 * alone);
    } finally {
      await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`);
      expect(await backupEnds).toMatchObject({
        code: '57P01',
      });
    }
  });
});
