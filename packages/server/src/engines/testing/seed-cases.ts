import assert from 'node:assert/strict';
import { logStart, nextPosition } from '../chain-hash.ts';
import type { Position, SharedLogEngine } from '../log-engine.ts';
import { chunkText, chunksOf, entry, firstChunk, readBehind, readChunks, readSnapshot, texts } from './engine-case.ts';
import type { LogUnderTest } from './engine-case.ts';

interface SharedLogUnderTest extends LogUnderTest {
  open(): Promise<SharedLogEngine>;
}

interface SeedCase {
  readonly name: string;
  run(log: SharedLogUnderTest): Promise<void>;
}

const begin: Position = { index: 700, hash: 'ab'.repeat(16) };

/** What the contract says about `seed`, for the engines of shared logs. */
export const seedCases: readonly SeedCase[] = [
  {
    name: 'a seeded log begins where it was told to, with its snapshot, also after a restart',
    async run(log) {
      let engine = await log.open();
      const large = Buffer.alloc(3 * 1024 * 1024, 'state');
      await engine.seed(begin, chunksOf('a', '', large));
      assert.deepEqual(await engine.tail(), begin);
      const end = await engine.append([entry('701'), entry('702')], begin);
      assert.equal(end.index, 702);
      await engine.close();
      engine = await log.open();
      assert.deepEqual(await engine.tail(), end);
      const snapshot = await engine.loadSnapshot();
      assert.deepEqual(snapshot?.position, begin);
      assert.deepEqual(await readChunks(snapshot.chunks), ['a', '', chunkText(large)]);
      assert.deepEqual(texts(await readBehind(engine, begin, 2)), ['701', '702']);
    },
  },
  {
    name: 'a seeded log refuses whoever follows another one',
    async run(log) {
      const engine = await log.open();
      await engine.seed(begin, chunksOf('state'));
      const refused = (from: Position, code: string): Promise<void> =>
        assert.rejects(firstChunk(engine, from), { name: 'EngineError', code });
      await refused(logStart, 'trimmed');
      await refused({ index: 700, hash: 'cd'.repeat(16) }, 'diverged');
      await refused(nextPosition(begin, entry('of the other')), 'diverged');
      const tail = { code: 'conflict', tail: begin };
      await assert.rejects(engine.append([entry('x')], logStart), tail);
      await assert.rejects(engine.append([entry('x')], { index: 700, hash: 'cd'.repeat(16) }), tail);
    },
  },
  {
    name: 'a log that is not empty is not seeded, and stays as it is',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      await assert.rejects(engine.seed(begin, chunksOf('state')), { code: 'conflict', tail: one });
      assert.equal(await engine.loadSnapshot(), undefined);
      await engine.append([entry('two')], one);
      assert.deepEqual(texts(await readBehind(engine, logStart, 2)), ['one', 'two']);
    },
  },
  {
    name: 'a log is seeded once',
    async run(log) {
      const engine = await log.open();
      await engine.seed(begin, chunksOf('first'));
      await assert.rejects(engine.seed({ ...begin, index: 900 }, chunksOf('second')), { code: 'conflict' });
      assert.deepEqual(await readSnapshot(engine), { index: 700, chunks: ['first'] });
    },
  },
  {
    name: 'of a seed and an append that meet, the first one wins',
    async run(log) {
      const [engine, other] = [await log.open(), await log.open()];
      let one: Position | undefined;
      async function* meeting(): AsyncGenerator<Uint8Array> {
        yield Buffer.alloc(2_000_000);
        one = await other.append([entry('one')], logStart);
        yield Buffer.alloc(10);
      }
      await assert.rejects(engine.seed(begin, meeting()), { code: 'conflict' });
      assert.deepEqual(await engine.tail(), one);
      assert.equal(await engine.loadSnapshot(), undefined);
      await engine.close();
    },
  },
  {
    name: 'a seed that fails on its way leaves the log empty, and the next one succeeds',
    async run(log) {
      const engine = await log.open();
      const failure = new Error('the file could not be read');
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield Buffer.alloc(2_000_000);
        throw failure;
      }
      await assert.rejects(engine.seed(begin, failing()), (error) => error === failure);
      assert.deepEqual(await engine.tail(), logStart);
      await engine.seed(begin, chunksOf('whole'));
      assert.deepEqual(await readSnapshot(engine), { index: 700, chunks: ['whole'] });
      const end = await engine.append([entry('701')], begin);
      await engine.saveSnapshot(end, chunksOf('later'));
      await engine.trim(701);
      assert.deepEqual(await readSnapshot(engine), { index: 701, chunks: ['later'] });
      assert.deepEqual(await engine.tail(), end);
    },
  },
];
