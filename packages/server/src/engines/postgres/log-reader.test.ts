import assert from 'node:assert/strict';
import { hasPostgres, PostgresCluster } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import type { Position } from '../log-engine.ts';
import { chunksOf, entries, entry, firstChunk, readBehind, texts } from '../testing/engine-case.ts';
import { FollowedLog } from './testing/followed-log.ts';
import { OpenedEngines } from './testing/opened-engines.ts';

describe.runIf(hasPostgres())('reading a log that somebody changed by hand', () => {
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

  /** Takes the log back to entry `index`, as a restored backup would. */
  async function takeBack(schema: string, index: number): Promise<void> {
    await cluster.query(`WITH cut AS (DELETE FROM ${schema}.entries WHERE index > ${index})
      UPDATE ${schema}.head SET index = e.index, hash = e.hash FROM ${schema}.entries e WHERE e.index = ${index}`);
  }

  test('a follower that stands at a lost end stops as diverged, without a reconnect', async () => {
    const { schema, engine, positions, followed } = await logOf(20);
    await takeBack(schema, 12);
    await assert.rejects(followed.reached(21), { name: 'EngineError', code: 'diverged', message: /ends at entry 12/ });
    for (const from of positions.slice(13)) await assert.rejects(firstChunk(engine, from), { code: 'diverged' });
    assert.equal((await readBehind(engine, positions[4]!, 8)).length, 8);
    await assert.rejects(engine.append([entry('x')], positions[20]!), { code: 'conflict', tail: positions[12] });
  });

  test('an end that was replaced by a longer one is diverged for whoever had the old one', async () => {
    const { schema, engine, positions, followed } = await logOf(5);
    const { engine: other } = await opened.open({ url: cluster.url(), schema: `${schema}_other` });
    const kept = await other.append(entries(3, 50), logStart);
    assert.deepEqual(kept, positions[3]);
    await other.append(entries(7, 80), kept);
    await cluster.query(`BEGIN; DELETE FROM ${schema}.entries WHERE index > 3;
      INSERT INTO ${schema}.entries SELECT * FROM ${schema}_other.entries WHERE index > 3;
      UPDATE ${schema}.head SET index = o.index, hash = o.hash FROM ${schema}_other.head o; COMMIT`);
    await assert.rejects(followed.reached(6), { code: 'diverged', message: /entry 5/ });
    await assert.rejects(firstChunk(engine, positions[4]!), { code: 'diverged' });
    assert.equal((await readBehind(engine, positions[3]!, 7)).length, 7);
  });

  test('a position is checked anew after a reconnect', async () => {
    const { schema, followed, reached } = await logOf(5);
    const ends = assert.rejects(followed.reached(6), { code: 'diverged' });
    const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '^tenure '`;
    // The reader is gone before the log changes, and looks at it again on another session.
    await cluster.query(`LOCK TABLE ${schema}.head; ${terminate};
      UPDATE ${schema}.entries SET hash = decode(repeat('ab', 16), 'hex') WHERE index = 5`);
    await reached('down');
    await ends;
  });

  test('a missing entry, a changed one and a missing head are damage', async () => {
    const { schema, engine, positions } = await logOf(10);
    await cluster.query(`DELETE FROM ${schema}.entries WHERE index = 6`);
    assert.equal((await readBehind(engine, logStart, 5)).length, 5);
    await assert.rejects(firstChunk(engine, positions[5]!), { code: 'damaged', message: /entry 6 .*missing.*backup/ });
    await assert.rejects(firstChunk(engine, positions[6]!), { code: 'damaged', message: /entry 6 is missing/ });
    await cluster.query(`UPDATE ${schema}.entries SET bytes = 'other' WHERE index = 9`);
    await assert.rejects(firstChunk(engine, positions[8]!), { code: 'damaged', message: /entry 9 .*not what was/ });
    assert.equal((await readBehind(engine, positions[9]!, 1)).length, 1);
    await cluster.query(`DELETE FROM ${schema}.entries WHERE index = 10`);
    await assert.rejects(firstChunk(engine, positions[9]!), { code: 'damaged' });
    await cluster.query(`DELETE FROM ${schema}.head`);
    await assert.rejects(engine.tail(), { code: 'damaged', message: /head holds no row/ });
    await assert.rejects(engine.append([entry('x')], positions[10]!), { name: 'EngineError' });
  });

  test('a follower is told that the log was trimmed past it, although nothing new was appended', async () => {
    const { schema, engine, positions } = await logOf(10);
    const follower = engine.follow(positions[2]!, new AbortController().signal)[Symbol.asyncIterator]();
    const { engine: leader } = await opened.open({ url: cluster.url(), schema });
    await leader.saveSnapshot(positions[10]!, chunksOf('state'));
    await leader.trim(8);
    await assert.rejects(follower.next() as Promise<unknown>, { code: 'trimmed', message: /behind entry 8/ });
    assert.equal((await readBehind(engine, positions[8]!, 2)).length, 2);
    assert.deepEqual(await cluster.query(`SELECT min(index) FROM ${schema}.entries`), [{ min: '9' }]);
    await leader.trim(10);
    assert.deepEqual(await cluster.query(`SELECT count(*) FROM ${schema}.entries`), [{ count: '0' }]);
    const end = await leader.append([entry('first behind the trim')], positions[10]!);
    assert.deepEqual(texts(await readBehind(engine, positions[10]!, 1)), ['first behind the trim']);
    assert.deepEqual(await engine.tail(), end);
    const other = { index: 10, hash: positions[9]!.hash };
    await assert.rejects(firstChunk(engine, other), { code: 'diverged' });
  });
});
