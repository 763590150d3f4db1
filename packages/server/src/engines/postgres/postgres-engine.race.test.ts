import assert from 'node:assert/strict';
import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import { entries, entry, readBehind, texts } from '../testing/engine-case.ts';
import { OpenedEngines } from './testing/opened-engines.ts';
import { PostgresCluster } from './testing/postgres-cluster.ts';
import { hasPostgres } from './testing/postgres-programs.ts';

describe.runIf(hasPostgres())('several PostgreSQL engines on one log', () => {
  let cluster: PostgresCluster;
  const opened = new OpenedEngines();
  beforeAll(async () => {
    cluster = await PostgresCluster.create();
  });
  afterEach(() => opened.closeAll());
  afterAll(() => cluster?.dispose());

  test('of two that append at one position exactly one wins, 500 times, and both read the same', async () => {
    const options = { url: cluster.url(), schema: 'race' };
    const { engine: one } = await opened.open(options);
    const { engine: other } = await opened.open(options);
    let after: Position = logStart;
    const won: string[] = [];
    for (let round = 0; round < 500; round++) {
      // Batches of several entries, so that a loser cannot slip in between.
      const batches = ['one', 'other'].map((who) => [`${who} ${round}`, `${who} ${round} more`]);
      const [first, second] = batches.map((batch) => batch.map(entry));
      const outcomes = await Promise.allSettled([one.append(first!, after), other.append(second!, after)]);
      const winner = outcomes.findIndex(({ status }) => status === 'fulfilled');
      const [won1, lost] = winner === 0 ? outcomes : outcomes.toReversed();
      assert.ok(won1?.status === 'fulfilled' && lost?.status === 'rejected', `round ${round}`);
      assert.ok(lost.reason instanceof EngineError && lost.reason.code === 'conflict', `${lost.reason}`);
      assert.deepEqual(lost.reason.tail, won1.value);
      after = won1.value;
      won.push(...batches[winner]!);
    }
    assert.equal(after.index, 1000);
    for (const engine of [one, other]) assert.deepEqual(texts(await readBehind(engine, logStart, 1000)), won);
  });

  test('a follower in another server hears of an append at once, and without notifications by its poll', async () => {
    const options = { url: cluster.url(), schema: 'heard' };
    const { engine: writer } = await opened.open(options);
    const { engine: reader } = await opened.open(options);
    const follower = reader.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
    let tail = logStart;
    const hear = async (word: string): Promise<number> => {
      const waiting = follower.next();
      tail = await writer.append([entry(word)], tail);
      const appendedAt = performance.now();
      const { value } = await waiting;
      assert.deepEqual(texts(value ?? []), [word]);
      return performance.now() - appendedAt;
    };
    await hear('first');
    const heardMs: number[] = [];
    for (let at = 0; at < 20; at++) heardMs.push(await hear(`notified ${at}`));
    heardMs.sort((one, two) => one - two);
    assert.ok(heardMs[10]! < 100, `median of ${heardMs[10]} ms: it waited for the poll`);
    // The reader no longer listens, and nobody tells it.
    await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`);
    await hear('on a new session');
    await cluster.query('ALTER FUNCTION pg_notify(text, text) RENAME TO pg_notify_kept');
    await cluster.query(`CREATE FUNCTION pg_catalog.pg_notify(text, text) RETURNS void LANGUAGE sql AS ''`);
    try {
      for (let at = 0; at < 4; at++) await hear(`polled ${at}`);
    } finally {
      await cluster.query('DROP FUNCTION pg_catalog.pg_notify(text, text)');
      await cluster.query('ALTER FUNCTION pg_notify_kept(text, text) RENAME TO pg_notify');
    }
    await follower.return?.();
  });

  test('a follower is given what it is told of if it follows by its hash, and each entry once', async () => {
    const options = { url: cluster.url(), schema: 'told' };
    const { engine: writer } = await opened.open(options);
    const { engine: reader } = await opened.open(options);
    const follower = reader.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
    const first = await writer.append([entry('first')], logStart);
    assert.deepEqual(texts((await follower.next()).value ?? []), ['first']);
    const waiting = follower.next();
    const second = nextPosition(first, entry('second'));
    // Neither another entry at this place nor one that leaves a gap is taken for what follows.
    reader.lookNow?.({ position: second, bytes: entry('another') });
    reader.lookNow?.({ position: nextPosition(second, entry('third')), bytes: entry('third') });
    reader.lookNow?.({ position: second, bytes: entry('second') });
    // It is not in the database yet, so that it can come from here alone.
    assert.deepEqual(texts((await waiting).value ?? []), ['second']);
    const tail = await writer.append([entry('second')], first);
    const rest = follower.next();
    reader.lookNow?.({ position: second, bytes: entry('second') });
    await writer.append([entry('third')], tail);
    assert.deepEqual(texts((await rest).value ?? []), ['third']);
    await follower.return?.();
  });

  test('eight that start at once make one schema, and one log', async () => {
    const options = { url: cluster.url(), schema: 'started_at_once' };
    const engines = await Promise.all(Array.from({ length: 8 }, () => opened.open(options)));
    const outcomes = await Promise.allSettled(engines.map(({ engine }) => engine.append([entry('x')], logStart)));
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
    const heads = await cluster.query('SELECT index FROM started_at_once.head');
    assert.deepEqual(heads, [{ index: '1' }]);
    assert.equal((await cluster.query('SELECT version FROM started_at_once.meta')).length, 1);
  });

  test('logs in two schemas of one database know nothing of each other', async () => {
    const { engine: one } = await opened.open({ url: cluster.url(), schema: 'cluster_a' });
    const { engine: other } = await opened.open({ url: cluster.url(), schema: 'cluster_b' });
    const end = await one.append([entry('a'), entry('b')], logStart);
    assert.deepEqual(await other.tail(), logStart);
    await other.append([entry('other')], logStart);
    assert.deepEqual(await one.tail(), end);
    assert.deepEqual(texts(await readBehind(other, logStart, 1)), ['other']);
  });

  test('appends stay fast while a long transaction keeps every dead version of the head', async () => {
    const { engine } = await opened.open({ url: cluster.url(), schema: 'long_backup' });
    let tail = await engine.append(entries(1, 100), logStart);
    const millisecondsOf100 = async (): Promise<number> => {
      const began = performance.now();
      for (let at = 0; at < 100; at++) tail = await engine.append([entry('x')], tail);
      return performance.now() - began;
    };
    const fastest = Math.min(await millisecondsOf100(), await millisecondsOf100());
    const backup = cluster.query('SELECT pg_sleep(3600) FROM long_backup.head');
    const backupEnds = assert.rejects(backup);
    try {
      for (let batch = 0; batch < 50; batch++) await millisecondsOf100();
      const slowest = Math.min(await millisecondsOf100(), await millisecondsOf100(), await millisecondsOf100());
      assert.ok(slowest < 3 * fastest + 50, `${fastest} ms for 100 appends at first, ${slowest} ms after 5000 more`);
    } finally {
      await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%'
        AND pid <> pg_backend_pid()`);
      await backupEnds;
    }
  });
});
