import { expect } from 'vitest';
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

/** The contract of `seed`, for the engines of shared logs. */
export const seedCases: readonly SeedCase[] = [
  {
    name: 'a seeded log begins at the given position, with its snapshot, also after a restart',
    async run(log) {
      let engine = await log.open();
      const large = Buffer.alloc(3 * 1024 * 1024, 'state');
      await engine.seed(begin, chunksOf('a', '', large));
      expect(await engine.tail()).toEqual(begin);
      const end = await engine.append([entry('701'), entry('702')], begin);
      expect(end.index).toBe(702);
      await engine.close();
      engine = await log.open();
      expect(await engine.tail()).toEqual(end);
      const snapshot = await engine.loadSnapshot();
      expect(snapshot?.position).toEqual(begin);
      expect(await readChunks(snapshot!.chunks)).toEqual(['a', '', chunkText(large)]);
      expect(texts(await readBehind(engine, begin, 2))).toEqual(['701', '702']);
    },
  },
  {
    name: 'a seeded log refuses a follower of another one',
    async run(log) {
      const engine = await log.open();
      await engine.seed(begin, chunksOf('state'));
      const refused = (from: Position, code: string): Promise<void> =>
        expect(firstChunk(engine, from)).rejects.toMatchObject({ name: 'EngineError', code });
      await refused(logStart, 'trimmed');
      await refused({ index: 700, hash: 'cd'.repeat(16) }, 'diverged');
      await refused(nextPosition(begin, entry('of the other')), 'diverged');
      const tail = { code: 'conflict', tail: begin };
      await expect(engine.append([entry('x')], logStart)).rejects.toMatchObject(tail);
      await expect(engine.append([entry('x')], { index: 700, hash: 'cd'.repeat(16) })).rejects.toMatchObject(tail);
    },
  },
  {
    name: 'a log that is not empty is not seeded, and stays unchanged',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      await expect(engine.seed(begin, chunksOf('state'))).rejects.toMatchObject({ code: 'conflict', tail: one });
      expect(await engine.loadSnapshot()).toBeUndefined();
      await engine.append([entry('two')], one);
      expect(texts(await readBehind(engine, logStart, 2))).toEqual(['one', 'two']);
    },
  },
  {
    name: 'a log is seeded once',
    async run(log) {
      const engine = await log.open();
      await engine.seed(begin, chunksOf('first'));
      await expect(engine.seed({ ...begin, index: 900 }, chunksOf('second'))).rejects.toMatchObject({
        code: 'conflict',
      });
      expect(await readSnapshot(engine)).toEqual({ index: 700, chunks: ['first'] });
    },
  },
  {
    name: 'of a concurrent seed and append, the first one wins',
    async run(log) {
      const [engine, other] = [await log.open(), await log.open()];
      let one: Position | undefined;
      async function* meeting(): AsyncGenerator<Uint8Array> {
        yield Buffer.alloc(2_000_000);
        one = await other.append([entry('one')], logStart);
        yield Buffer.alloc(10);
      }
      await expect(engine.seed(begin, meeting())).rejects.toMatchObject({ code: 'conflict' });
      expect(await engine.tail()).toEqual(one);
      expect(await engine.loadSnapshot()).toBeUndefined();
      await engine.close();
    },
  },
  {
    name: 'a failed seed leaves the log empty, and the next one succeeds',
    async run(log) {
      const engine = await log.open();
      const failure = new Error('the file could not be read');
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield Buffer.alloc(2_000_000);
        throw failure;
      }
      await expect(engine.seed(begin, failing())).rejects.toBe(failure);
      expect(await engine.tail()).toEqual(logStart);
      await engine.seed(begin, chunksOf('whole'));
      expect(await readSnapshot(engine)).toEqual({ index: 700, chunks: ['whole'] });
      const end = await engine.append([entry('701')], begin);
      await engine.saveSnapshot(end, chunksOf('later'));
      await engine.trim(701);
      expect(await readSnapshot(engine)).toEqual({ index: 701, chunks: ['later'] });
      expect(await engine.tail()).toEqual(end);
    },
  },
];
