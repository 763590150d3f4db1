import { expect } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import type { Position } from '../log-engine.ts';
import { chunkText, chunksOf, entries, entry, readBehind } from './engine-case.ts';
import { readChunks, readSnapshot, texts } from './engine-case.ts';
import type { EngineCase } from './engine-case.ts';

/** The contract of snapshots and `trim`. */
export const snapshotCases: readonly EngineCase[] = [
  {
    name: 'there is no snapshot at first, and then the saved one, in the same chunks',
    async run(log) {
      const engine = await log.open();
      expect(await engine.loadSnapshot()).toBeUndefined();
      const one = await engine.append([entry('one')], logStart);
      const large = Buffer.alloc(3 * 1024 * 1024, 'state');
      await engine.saveSnapshot(one, chunksOf('a', '', large, 'z'));
      const snapshot = await engine.loadSnapshot();
      expect(snapshot?.position).toEqual(one);
      expect(await readChunks(snapshot!.chunks)).toEqual(['a', '', chunkText(large), 'z']);
      expect(engine.sizeBytes()).toBeGreaterThanOrEqual(large.length);
    },
  },
  {
    name: 'a snapshot without chunks and one at the start of the log are snapshots',
    async run(log) {
      const engine = await log.open();
      await engine.saveSnapshot(logStart, chunksOf());
      expect(await readSnapshot(engine)).toEqual({ index: 0, chunks: [] });
      await engine.saveSnapshot(logStart, chunksOf('restored'));
      expect(await readSnapshot(engine)).toEqual({ index: 0, chunks: ['restored'] });
    },
  },
  {
    name: 'a snapshot replaces one that is older or as old, and never a newer one',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      const two = await engine.append([entry('two')], one);
      await engine.saveSnapshot(one, chunksOf('at one'));
      await engine.saveSnapshot(two, chunksOf('at two'));
      await engine.saveSnapshot(one, chunksOf('late'));
      expect(await readSnapshot(engine)).toEqual({ index: 2, chunks: ['at two'] });
      await engine.saveSnapshot(two, chunksOf('at two', 'again'));
      expect(await readSnapshot(engine)).toEqual({ index: 2, chunks: ['at two', 'again'] });
    },
  },
  {
    name: 'a snapshot of a position that the log does not hold is refused',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      const beyond = nextPosition(one, entry('two'));
      for (const position of [beyond, { index: 1, hash: logStart.hash }]) {
        await expect(engine.saveSnapshot(position, chunksOf('x'))).rejects.toMatchObject({
          name: 'EngineError',
          code: 'diverged',
        });
      }
      expect(await engine.loadSnapshot()).toBeUndefined();
    },
  },
  {
    name: 'until a snapshot is complete the old one is the newest, and appends continue meanwhile',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      await engine.saveSnapshot(one, chunksOf('old'));
      let tail = await engine.append([entry('two')], one);
      const at = tail;
      const buffer = Buffer.alloc(100_000);
      async function* slowly(): AsyncGenerator<Uint8Array> {
        for (let step = 0; step < 20; step++) {
          tail = await engine.append([entry(`beside ${step}`)], tail);
          expect(await readSnapshot(engine)).toEqual({ index: 1, chunks: ['old'] });
          // The bytes of a chunk are the caller's again once the next one is pulled.
          yield buffer.fill(step);
        }
      }
      await engine.saveSnapshot(at, slowly());
      const expected = Array.from({ length: 20 }, (_, step) => chunkText(Buffer.alloc(100_000, step)));
      expect(await readSnapshot(engine)).toEqual({ index: 2, chunks: expected });
      expect((await readBehind(engine, at, 20)).length).toBe(20);
    },
  },
  {
    name: 'when the chunks fail, their error is rethrown, the old snapshot stays, and another can be saved',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      await engine.saveSnapshot(logStart, chunksOf('old'));
      const failure = new Error('the state could not be read');
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield Buffer.alloc(2_000_000);
        throw failure;
      }
      await expect(engine.saveSnapshot(one, failing())).rejects.toBe(failure);
      expect(await readSnapshot(engine)).toEqual({ index: 0, chunks: ['old'] });
      await engine.saveSnapshot(one, chunksOf('new'));
      expect(await readSnapshot(engine)).toEqual({ index: 1, chunks: ['new'] });
      await engine.append([entry('two')], one);
    },
  },
  {
    name: 'closing the engine ends a snapshot that is being written, and it is not stored',
    async run(log) {
      const engine = await log.open();
      let closing: Promise<void> | undefined;
      async function* endless(): AsyncGenerator<Uint8Array> {
        for (;;) {
          yield Buffer.alloc(1000);
          closing ??= engine.close();
        }
      }
      await expect(engine.saveSnapshot(logStart, endless())).rejects.toMatchObject({
        name: 'EngineError',
        code: 'closed',
      });
      await closing;
    },
  },
  {
    name: 'two snapshots at once are refused, and the first one is saved',
    async run(log) {
      const engine = await log.open();
      const first = engine.saveSnapshot(logStart, chunksOf('first'));
      await expect(engine.saveSnapshot(logStart, chunksOf('second'))).rejects.toBeInstanceOf(Error);
      await first;
      expect(await readSnapshot(engine)).toEqual({ index: 0, chunks: ['first'] });
    },
  },
  {
    name: 'without a snapshot nothing is trimmed, and with one never more than it replaces',
    async run(log) {
      const engine = await log.open();
      const positions: Position[] = [logStart];
      for (const bytes of entries(60, 2000)) positions.push(await engine.append([bytes], positions.at(-1)!));
      await engine.trim(60);
      expect((await readBehind(engine, logStart, 60)).length).toBe(60);
      await engine.saveSnapshot(positions[40]!, chunksOf('state'));
      await engine.trim(10);
      expect((await readBehind(engine, positions[10]!, 50)).length).toBe(50);
      await engine.trim(1000);
      expect((await readBehind(engine, positions[40]!, 20)).length).toBe(20);
      const end = await engine.append([entry('more')], positions[60]!);
      await engine.trim(1000);
      expect(texts(await readBehind(engine, positions[60]!, 1))).toEqual(['more']);
      expect(await engine.tail()).toEqual(end);
    },
  },
  {
    name: 'after a trim each position is served in full, or refused as trimmed if it lies below the served ones',
    async run(log) {
      const engine = await log.open();
      const positions: Position[] = [logStart];
      for (const bytes of entries(60, 2000)) positions.push(await engine.append([bytes], positions.at(-1)!));
      await engine.saveSnapshot(positions[60]!, chunksOf('state'));
      await engine.trim(60);
      let trimmed = 0;
      for (const from of positions.slice(0, 60)) {
        // The engine chooses how much it removes: each position is either refused or served completely.
        const read = await readBehind(engine, from, 60 - from.index).catch((error: unknown) => error);
        if (Array.isArray(read)) expect(read.length).toBe(60 - from.index);
        else expect((read as { code?: string }).code, `${read}`).toBe('trimmed');
        if (!Array.isArray(read)) expect(++trimmed, 'what is refused lies below what is served').toBe(from.index + 1);
      }
    },
  },
  {
    name: 'a snapshot and the log after it survive a restart, trimmed or not',
    needsDurability: true,
    async run(log) {
      let engine = await log.open();
      let at = logStart;
      for (const bytes of entries(60, 2000)) at = await engine.append([bytes], at);
      await engine.saveSnapshot(at, chunksOf('state', 'of 60'));
      await engine.close();
      engine = await log.open();
      expect(await readSnapshot(engine)).toEqual({ index: 60, chunks: ['state', 'of 60'] });
      await engine.trim(60);
      const end = await engine.append([entry('61')], at);
      await engine.close();
      engine = await log.open();
      expect(await engine.tail()).toEqual(end);
      expect(await readSnapshot(engine)).toEqual({ index: 60, chunks: ['state', 'of 60'] });
      expect(texts(await readBehind(engine, at, 1))).toEqual(['61']);
    },
  },
];
