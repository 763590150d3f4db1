import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import type { LogEngine, Position } from '../log-engine.ts';
import { chunksOf, entries, entry, readChunks, readSnapshot } from '../testing/engine-case.ts';
import { OpenedEngines } from './testing/opened-engines.ts';

/** Ends this database's sessions with that purpose. Other test files use other databases on the same server. */
const terminate = (purpose: string): string => `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name ~ '^tenure ${purpose}' AND datname = current_database()`;

describe.runIf(hasPostgres())('snapshots in PostgreSQL', () => {
  let database: PostgresDatabase;
  let schemas = 0;
  const opened = new OpenedEngines();
  beforeAll(async () => {
    database = await PostgresDatabase.create();
  });
  afterEach(() => opened.closeAll());
  afterAll(() => database?.dispose());

  async function newLog(): Promise<{ engine: LogEngine; schema: string; tail: Position }> {
    const schema = `snapshots_${++schemas}`;
    const { engine } = await opened.open({ url: database.url(), schema });
    return { engine, schema, tail: await engine.append(entries(10, 100), logStart) };
  }

  const rowsOf = async (schema: string): Promise<unknown> =>
    (
      await database.query(`SELECT (SELECT count(*)::int FROM ${schema}.snapshots) AS snapshots,
      (SELECT count(*)::int FROM ${schema}.snapshot_chunks) AS chunks`)
    )[0];

  test('rows hold at most a MiB, and a chunk is read as it was saved', async () => {
    const { engine, schema, tail } = await newLog();
    const sizes = [0, 1, 1024 * 1024, 1024 * 1024 + 1, 5_000_000];
    await engine.saveSnapshot(tail, chunksOf(...sizes.map((size) => Buffer.alloc(size, `chunk ${size}`))));
    const loaded = await engine.loadSnapshot();
    const read: number[] = [];
    for await (const chunk of loaded!.chunks) read.push(chunk.length);
    expect(read).toEqual(sizes);
    const largest = `SELECT max(octet_length(bytes))::int AS bytes FROM ${schema}.snapshot_chunks`;
    expect(await database.query(largest)).toEqual([{ bytes: 1024 * 1024 }]);
  });

  test('the newest and the one before it are kept, so that a reader of the old one can finish', async () => {
    const { engine, schema, tail } = await newLog();
    await engine.saveSnapshot(logStart, chunksOf('first', 'of two'));
    const first = await engine.loadSnapshot();
    await engine.saveSnapshot(tail, chunksOf('second'));
    expect(await readChunks(first!.chunks)).toEqual(['first', 'of two']);
    const second = await engine.loadSnapshot();
    for (const text of ['third', 'fourth']) await engine.saveSnapshot(tail, chunksOf(text));
    expect(await rowsOf(schema)).toEqual({ snapshots: 2, chunks: 2 });
    await expect(readChunks(second!.chunks)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/replaced.*load the newest/),
    });
    expect(await readSnapshot(engine)).toEqual({ index: 10, chunks: ['fourth'] });
  });

  test('a snapshot whose writer was lost is never visible, and is removed with the next', async () => {
    const { engine, schema, tail } = await newLog();
    const { engine: other } = await opened.open({ url: database.url(), schema });
    let enterSecond = (): void => undefined;
    const secondBegan = new Promise<void>((resolve) => (enterSecond = resolve));
    let letGo = (): void => undefined;
    const mayEnd = new Promise<void>((resolve) => (letGo = resolve));
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield entry('slow');
      enterSecond();
      await mayEnd;
      yield entry('and whole');
    }
    const saving = engine.saveSnapshot(tail, slow());
    await secondBegan;
    await other.saveSnapshot(logStart, chunksOf('quick'));
    expect(await rowsOf(schema)).toEqual({ snapshots: 2, chunks: 2 });
    letGo();
    await saving;
    expect(await readSnapshot(other)).toEqual({ index: 10, chunks: ['slow', 'and whole'] });

    async function* broken(): AsyncGenerator<Uint8Array> {
      yield entry('lost');
      await database.query(terminate('store'));
      yield entry('never written');
    }
    await expect(engine.saveSnapshot(tail, broken())).rejects.toMatchObject({ code: 'unavailable' });
    expect(await readSnapshot(other)).toEqual({ index: 10, chunks: ['slow', 'and whole'] });
    expect(await rowsOf(schema)).toEqual({ snapshots: 3, chunks: 4 });
    await other.saveSnapshot(tail, chunksOf('next'));
    expect(await rowsOf(schema)).toEqual({ snapshots: 2, chunks: 3 });
  });

  test('a snapshot that was changed by hand is refused as damaged', async () => {
    const { engine, schema, tail } = await newLog();
    const damage = [
      `DELETE FROM ${schema}.snapshot_chunks WHERE bytes = 'two'`,
      `UPDATE ${schema}.snapshot_chunks SET bytes = 'other' WHERE bytes = 'two'`,
      `UPDATE ${schema}.snapshot_chunks SET is_continued = true WHERE bytes = 'one'`,
    ];
    for (const statement of damage) {
      await engine.saveSnapshot(tail, chunksOf('one', 'two', 'three'));
      await database.query(statement);
      const loaded = await engine.loadSnapshot();
      await expect(readChunks(loaded!.chunks), statement).rejects.toMatchObject({
        code: 'damaged',
        message: expect.stringMatching(/entry 10 .*backup/),
      });
      await database.query(`DELETE FROM ${schema}.snapshot_chunks; DELETE FROM ${schema}.snapshots`);
    }
  });

  test('a load resumes after a lost connection', async () => {
    const { engine, tail } = await newLog();
    await engine.saveSnapshot(tail, chunksOf('one', 'two', 'three'));
    const loaded = await engine.loadSnapshot();
    const read: string[] = [];
    for await (const chunk of loaded!.chunks) {
      read.push(Buffer.from(chunk).toString());
      await database.query(terminate('read'));
    }
    expect(read).toEqual(['one', 'two', 'three']);
  });

  test('trimming removes many entries in slices, and the rest of an interrupted trim', async () => {
    const { engine, schema, tail } = await newLog();
    const end = await engine.append(entries(5_000, 10), tail);
    await engine.saveSnapshot(end, chunksOf('state'));
    await database.query(`CREATE TABLE ${schema}_slices (removed bigint)`);
    await database.query(`CREATE FUNCTION ${schema}_slice() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO ${schema}_slices SELECT count(*) FROM removed; RETURN NULL; END $$`);
    await database.query(`CREATE TRIGGER slice AFTER DELETE ON ${schema}.entries REFERENCING OLD TABLE AS removed
      FOR EACH STATEMENT EXECUTE FUNCTION ${schema}_slice()`);
    // As if a server had moved the beginning of the log and then died.
    await database.query(`UPDATE ${schema}.head SET trimmed_index = 2000,
      trimmed_hash = (SELECT hash FROM ${schema}.entries WHERE index = 2000)`);
    await engine.trim(1_000);
    expect(await database.query(`SELECT min(index)::int AS first FROM ${schema}.entries`)).toEqual([{ first: 2001 }]);
    await engine.trim(end.index);
    expect(await database.query(`SELECT count(*)::int AS left FROM ${schema}.entries`)).toEqual([{ left: 0 }]);
    const [slices] = await database.query(
      `SELECT max(removed)::int AS most, sum(removed)::int AS all FROM ${schema}_slices`,
    );
    expect(slices).toEqual({ most: 1024, all: 5010 });
  });

  test('the log is measured in the database when the engine is opened', async () => {
    const { engine, schema, tail } = await newLog();
    await engine.append(entries(4, 500_000), tail);
    await engine.close();
    const { engine: again } = await opened.open({ url: database.url(), schema });
    expect(again.sizeBytes(), `${again.sizeBytes()} bytes`).toBeGreaterThan(2_000_000);
    expect(again.sizeBytes(), `${again.sizeBytes()} bytes`).toBeLessThan(4_000_000);
  });
});
