import { hasPostgres, PostgresCluster } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import type { Position } from '../log-engine.ts';
import { chunksOf, entries, entry, firstChunk, readBehind, texts } from '../testing/engine-case.ts';
import { FollowedLog } from './testing/followed-log.ts';
import { OpenedEngines } from './testing/opened-engines.ts';

describe.runIf(hasPostgres())('reading a log that was changed by hand', () => {
  let cluster: PostgresCluster;
  let schemas = 0;
  const opened = new OpenedEngines();
  beforeAll(async () => {
    cluster = await PostgresCluster.create();
  });
  afterEach(() => opened.closeAll());
  afterAll(() => cluster?.dispose());

  async function logOf(count: number) {
    const schema = `changed_${++schemas}`;
    const { engine, reached } = await opened.open({ url: cluster.url(), schema });
    const positions: Position[] = [logStart];
    for (const bytes of entries(count, 50)) positions.push(await engine.append([bytes], positions.at(-1)!));
    const followed = new FollowedLog(engine);
    await followed.reached(count);
    return { schema, engine, positions, followed, reached };
  }

  /** Resets the log to entry `index`, as the restore of a backup would. */
  async function takeBack(schema: string, index: number): Promise<void> {
    await cluster.query(`WITH cut AS (DELETE FROM ${schema}.entries WHERE index > ${index})
      UPDATE ${schema}.head SET index = e.index, hash = e.hash FROM ${schema}.entries e WHERE e.index = ${index}`);
  }

  test('a follower at a lost end stops as diverged, without a reconnect', async () => {
    const { schema, engine, positions, followed } = await logOf(20);
    await takeBack(schema, 12);
    await expect(followed.reached(21)).rejects.toMatchObject({
      name: 'EngineError',
      code: 'diverged',
      message: expect.stringMatching(/ends at entry 12/),
    });
    for (const from of positions.slice(13))
      await expect(firstChunk(engine, from)).rejects.toMatchObject({ code: 'diverged' });
    expect((await readBehind(engine, positions[4]!, 8)).length).toBe(8);
    await expect(engine.append([entry('x')], positions[20]!)).rejects.toMatchObject({
      code: 'conflict',
      tail: positions[12],
    });
  });

  test('an end that was replaced by a longer one is diverged for a follower of the old one', async () => {
    const { schema, engine, positions, followed } = await logOf(5);
    const { engine: other } = await opened.open({ url: cluster.url(), schema: `${schema}_other` });
    const kept = await other.append(entries(3, 50), logStart);
    expect(kept).toEqual(positions[3]);
    await other.append(entries(7, 80), kept);
    await cluster.query(`BEGIN; DELETE FROM ${schema}.entries WHERE index > 3;
      INSERT INTO ${schema}.entries SELECT * FROM ${schema}_other.entries WHERE index > 3;
      UPDATE ${schema}.head SET index = o.index, hash = o.hash FROM ${schema}_other.head o; COMMIT`);
    await expect(followed.reached(6)).rejects.toMatchObject({
      code: 'diverged',
      message: expect.stringMatching(/entry 5/),
    });
    await expect(firstChunk(engine, positions[4]!)).rejects.toMatchObject({ code: 'diverged' });
    expect((await readBehind(engine, positions[3]!, 7)).length).toBe(7);
  });

  test('a position is checked again after a reconnect', async () => {
    const { schema, followed, reached } = await logOf(5);
    const ends = followed.reached(6).catch((error: unknown) => error);
    const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '^tenure '`;
    // The reader is disconnected before the log changes, and reads it again on another session.
    await cluster.query(`LOCK TABLE ${schema}.head; ${terminate};
      UPDATE ${schema}.entries SET hash = decode(repeat('ab', 16), 'hex') WHERE index = 5`);
    await reached('down');
    expect(await ends).toMatchObject({ code: 'diverged' });
  });

  test('a missing entry, a changed one and a missing head are damage', async () => {
    const { schema, engine, positions } = await logOf(10);
    await cluster.query(`DELETE FROM ${schema}.entries WHERE index = 6`);
    expect((await readBehind(engine, logStart, 5)).length).toBe(5);
    await expect(firstChunk(engine, positions[5]!)).rejects.toMatchObject({
      code: 'damaged',
      message: expect.stringMatching(/entry 6 .*missing.*backup/),
    });
    await expect(firstChunk(engine, positions[6]!)).rejects.toMatchObject({
      code: 'damaged',
      message: expect.stringMatching(/entry 6 is missing/),
    });
    await cluster.query(`UPDATE ${schema}.entries SET bytes = 'other' WHERE index = 9`);
    await expect(firstChunk(engine, positions[8]!)).rejects.toMatchObject({
      code: 'damaged',
      message: expect.stringMatching(/entry 9 .*not what was/),
    });
    expect((await readBehind(engine, positions[9]!, 1)).length).toBe(1);
    await cluster.query(`DELETE FROM ${schema}.entries WHERE index = 10`);
    await expect(firstChunk(engine, positions[9]!)).rejects.toMatchObject({ code: 'damaged' });
    await cluster.query(`DELETE FROM ${schema}.head`);
    await expect(engine.tail()).rejects.toMatchObject({
      code: 'damaged',
      message: expect.stringMatching(/head holds no row/),
    });
    await expect(engine.append([entry('x')], positions[10]!)).rejects.toMatchObject({ name: 'EngineError' });
  });

  test('a follower is told that the log was trimmed past it, also when no entry was appended', async () => {
    const { schema, engine, positions } = await logOf(10);
    const follower = engine.follow(positions[2]!, new AbortController().signal)[Symbol.asyncIterator]();
    const { engine: leader } = await opened.open({ url: cluster.url(), schema });
    await leader.saveSnapshot(positions[10]!, chunksOf('state'));
    await leader.trim(8);
    await expect(follower.next()).rejects.toMatchObject({
      code: 'trimmed',
      message: expect.stringMatching(/behind entry 8/),
    });
    expect((await readBehind(engine, positions[8]!, 2)).length).toBe(2);
    expect(await cluster.query(`SELECT min(index) FROM ${schema}.entries`)).toEqual([{ min: '9' }]);
    await leader.trim(10);
    expect(await cluster.query(`SELECT count(*) FROM ${schema}.entries`)).toEqual([{ count: '0' }]);
    const end = await leader.append([entry('first behind the trim')], positions[10]!);
    expect(texts(await readBehind(engine, positions[10]!, 1))).toEqual(['first behind the trim']);
    expect(await engine.tail()).toEqual(end);
    const other = { index: 10, hash: positions[9]!.hash };
    await expect(firstChunk(engine, other)).rejects.toMatchObject({ code: 'diverged' });
  });
});
