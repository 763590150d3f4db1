import assert from 'node:assert/strict';
import { logStart, nextPosition } from '../chain-hash.ts';
import type { Position } from '../log-engine.ts';
import { chunkText, chunksOf, entries, entry, readBehind } from './engine-case.ts';
import { readChunks, readSnapshot, texts } from './engine-case.ts';
import type { EngineCase } from './engine-case.ts';

/** What the contract says about snapshots and `trim`. */
export const snapshotCases: readonly EngineCase[] = [
  {
    name: 'there is no snapshot at first, and then the one that was saved, cut as it was',
    async run(log) {
      const engine = await log.open();
      assert.equal(await engine.loadSnapshot(), undefined);
      const one = await engine.append([entry('one')], logStart);
      const large = Buffer.alloc(3 * 1024 * 1024, 'state');
      await engine.saveSnapshot(one, chunksOf('a', '', large, 'z'));
      const snapshot = await engine.loadSnapshot();
      assert.deepEqual(snapshot?.position, one);
      assert.deepEqual(await readChunks(snapshot.chunks), ['a', '', chunkText(large), 'z']);
      assert.ok(engine.sizeBytes() >= large.length);
    },
  },
  {
    name: 'a snapshot without chunks and one at the start of the log are snapshots',
    async run(log) {
      const engine = await log.open();
      await engine.saveSnapshot(logStart, chunksOf());
      assert.deepEqual(await readSnapshot(engine), { index: 0, chunks: [] });
      await engine.saveSnapshot(logStart, chunksOf('restored'));
      assert.deepEqual(await readSnapshot(engine), { index: 0, chunks: ['restored'] });
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
      assert.deepEqual(await readSnapshot(engine), { index: 2, chunks: ['at two'] });
      await engine.saveSnapshot(two, chunksOf('at two', 'again'));
      assert.deepEqual(await readSnapshot(engine), { index: 2, chunks: ['at two', 'again'] });
    },
  },
  {
    name: 'a snapshot of a position that the log does not hold is refused',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      const beyond = nextPosition(one, entry('two'));
      for (const position of [beyond, { index: 1, hash: logStart.hash }]) {
        await assert.rejects(engine.saveSnapshot(position, chunksOf('x')), { name: 'EngineError', code: 'diverged' });
      }
      assert.equal(await engine.loadSnapshot(), undefined);
    },
  },
  {
    name: 'until a snapshot is whole the old one is the newest, and appends go on beside it',
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
          assert.deepEqual(await readSnapshot(engine), { index: 1, chunks: ['old'] });
          // The bytes of a chunk are the caller's again once the next one is pulled.
          yield buffer.fill(step);
        }
      }
      await engine.saveSnapshot(at, slowly());
      const expected = Array.from({ length: 20 }, (_, step) => chunkText(Buffer.alloc(100_000, step)));
      assert.deepEqual(await readSnapshot(engine), { index: 2, chunks: expected });
      assert.equal((await readBehind(engine, at, 20)).length, 20);
    },
  },
  {
    name: 'when the chunks fail, their error comes out, the old snapshot stays, and another can be saved',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one')], logStart);
      await engine.saveSnapshot(logStart, chunksOf('old'));
      const failure = new Error('the state could not be read');
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield Buffer.alloc(2_000_000);
        throw failure;
      }
      await assert.rejects(engine.saveSnapshot(one, failing()), (error) => error === failure);
      assert.deepEqual(await readSnapshot(engine), { index: 0, chunks: ['old'] });
      await engine.saveSnapshot(one, chunksOf('new'));
      assert.deepEqual(await readSnapshot(engine), { index: 1, chunks: ['new'] });
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
      await assert.rejects(engine.saveSnapshot(logStart, endless()), { name: 'EngineError', code: 'closed' });
      await closing;
    },
  },
  {
    name: 'two snapshots at once are refused, and the first one is saved',
    async run(log) {
      const engine = await log.open();
      const first = engine.saveSnapshot(logStart, chunksOf('first'));
      await assert.rejects(engine.saveSnapshot(logStart, chunksOf('second')));
      await first;
      assert.deepEqual(await readSnapshot(engine), { index: 0, chunks: ['first'] });
    },
  },
  {
    name: 'without a snapshot nothing is trimmed, and with one never more than it stands for',
    async run(log) {
      const engine = await log.open();
      const positions: Position[] = [logStart];
      for (const bytes of entries(60, 2000)) positions.push(await engine.append([bytes], positions.at(-1)!));
      await engine.trim(60);
      assert.equal((await readBehind(engine, logStart, 60)).length, 60);
      await engine.saveSnapshot(positions[40]!, chunksOf('state'));
      await engine.trim(10);
      assert.equal((await readBehind(engine, positions[10]!, 50)).length, 50);
      await engine.trim(1000);
      assert.equal((await readBehind(engine, positions[40]!, 20)).length, 20);
      const end = await engine.append([entry('more')], positions[60]!);
      await engine.trim(1000);
      assert.deepEqual(texts(await readBehind(engine, positions[60]!, 1)), ['more']);
      assert.deepEqual(await engine.tail(), end);
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
        // How much is forgotten is the engine's choice: each position is refused in one way or served in full.
        const read = await readBehind(engine, from, 60 - from.index).catch((error: unknown) => error);
        if (Array.isArray(read)) assert.equal(read.length, 60 - from.index);
        else assert.equal((read as { code?: string }).code, 'trimmed', `${read}`);
        if (!Array.isArray(read)) assert.equal(++trimmed, from.index + 1, 'what is refused lies below what is served');
      }
    },
  },
  {
    name: 'a snapshot and the log behind it survive a restart, trimmed or not',
    needsDurability: true,
    async run(log) {
      let engine = await log.open();
      let at = logStart;
      for (const bytes of entries(60, 2000)) at = await engine.append([bytes], at);
      await engine.saveSnapshot(at, chunksOf('state', 'of 60'));
      await engine.close();
      engine = await log.open();
      assert.deepEqual(await readSnapshot(engine), { index: 60, chunks: ['state', 'of 60'] });
      await engine.trim(60);
      const end = await engine.append([entry('61')], at);
      await engine.close();
      engine = await log.open();
      assert.deepEqual(await engine.tail(), end);
      assert.deepEqual(await readSnapshot(engine), { index: 60, chunks: ['state', 'of 60'] });
      assert.deepEqual(texts(await readBehind(engine, at, 1)), ['61']);
    },
  },
];
