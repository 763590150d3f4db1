import { expect } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import type { LoggedEntry, Position } from '../log-engine.ts';
import { chunksOf, entries, entry, firstChunk, readBehind, texts } from './engine-case.ts';
import type { EngineCase } from './engine-case.ts';

/** The contract of `follow`. */
export const followCases: readonly EngineCase[] = [
  {
    name: 'following from each position returns every entry after it, once, in order, with its position',
    async run(log) {
      const engine = await log.open();
      const words = Array.from({ length: 30 }, (_, at) => `word ${at}`);
      const positions: Position[] = [logStart];
      let tail = logStart;
      for (let at = 0; at < words.length; at += 3) {
        tail = await engine.append(words.slice(at, at + 3).map(entry), tail);
      }
      for (const word of words) positions.push(nextPosition(positions.at(-1)!, entry(word)));
      for (const [at, from] of positions.slice(0, -1).entries()) {
        const read = await readBehind(engine, from, words.length - at);
        expect(texts(read)).toEqual(words.slice(at));
        expect(read.map(({ position }) => position)).toEqual(positions.slice(at + 1));
      }
    },
  },
  {
    name: 'following waits at the end of the log and continues when it grows',
    async run(log) {
      const engine = await log.open();
      const follower = engine.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
      let tail = logStart;
      const seen: string[] = [];
      for (const word of ['one', 'two', 'three']) {
        const waiting = follower.next();
        tail = await engine.append([entry(word)], tail);
        const { value } = (await waiting) as { value: readonly LoggedEntry[] };
        seen.push(...texts(value));
      }
      expect(seen).toEqual(['one', 'two', 'three']);
      await follower.return?.();
    },
  },
  {
    name: 'concurrent followers each get every entry, once and in order',
    async run(log) {
      const engine = await log.open();
      const count = 300;
      const followers = Array.from({ length: 4 }, () => readBehind(engine, logStart, count));
      let tail = logStart;
      for (let at = 0; at < count; at += 2) tail = await engine.append([entry(`${at}`), entry(`${at + 1}`)], tail);
      const expected = Array.from({ length: count }, (_, at) => `${at}`);
      for (const follower of followers) expect(texts(await follower)).toEqual(expected);
    },
  },
  {
    name: 'an abort ends following without an error, before it begins, while it waits and between two chunks',
    async run(log) {
      const engine = await log.open();
      await engine.append(entries(3, 10), logStart);
      const aborted = engine.follow(logStart, AbortSignal.abort())[Symbol.asyncIterator]();
      expect((await aborted.next()).done).toBe(true);
      const stop = new AbortController();
      const follower = engine.follow(logStart, stop.signal)[Symbol.asyncIterator]();
      expect((await follower.next()).done).toBe(false);
      const waiting = follower.next();
      stop.abort();
      expect((await waiting).done).toBe(true);
    },
  },
  {
    name: 'closing the engine ends a waiting follower with an error of its own',
    async run(log) {
      const engine = await log.open();
      const waiting = firstChunk(engine, logStart);
      const outcome = waiting.catch((error: unknown) => error);
      await engine.tail();
      await engine.close();
      expect(await outcome).toMatchObject({ name: 'EngineError', code: 'closed' });
    },
  },
  {
    name: 'a chunk is bounded in bytes',
    async run(log) {
      const engine = await log.open();
      await engine.append(entries(64, 256 * 1024), logStart);
      let largest = 0;
      let read = 0;
      for await (const chunk of engine.follow(logStart, new AbortController().signal)) {
        largest = Math.max(
          largest,
          chunk.reduce((sum, { bytes }) => sum + bytes.length, 0),
        );
        read += chunk.length;
        if (read === 64) break;
      }
      expect(largest, `a chunk of ${largest} bytes`).toBeLessThanOrEqual(4 * 1024 * 1024);
    },
  },
  {
    name: 'a position that the log does not hold is refused as diverged',
    async run(log) {
      const engine = await log.open();
      const one = await engine.append([entry('one'), entry('two')], logStart);
      const otherHash = { index: 1, hash: one.hash };
      const otherStart = { index: 0, hash: one.hash };
      const beyond = nextPosition(one, entry('three'));
      const otherEnd = { index: 2, hash: nextPosition(logStart, entry('one')).hash };
      for (const from of [otherHash, otherStart, otherEnd, beyond]) {
        await expect(firstChunk(engine, from)).rejects.toMatchObject({ name: 'EngineError', code: 'diverged' });
      }
    },
  },
  {
    name: 'entries returned to a follower do not change while the log grows',
    async run(log) {
      const engine = await log.open();
      let tail = await engine.append([entry('first')], logStart);
      const follower = engine.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
      const { value } = (await follower.next()) as { value: readonly LoggedEntry[] };
      const waiting = follower.next();
      tail = await engine.append(entries(100, 5000), tail);
      await waiting;
      await follower.return?.();
      expect(texts(value)).toEqual(['first']);
    },
  },
  {
    name: 'a paused follower keeps its position across snapshot and trim, or is refused as trimmed',
    async run(log) {
      const engine = await log.open();
      let tail = logStart;
      for (let at = 0; at < 40; at++) tail = await engine.append(entries(1, 3000), tail);
      const follower = engine.follow(logStart, new AbortController().signal)[Symbol.asyncIterator]();
      let next = 1;
      await engine.saveSnapshot(tail, chunksOf('state'));
      await engine.trim(tail.index);
      tail = await engine.append([entry('last')], tail);
      try {
        while (next <= tail.index) {
          const { value } = (await follower.next()) as { value: readonly LoggedEntry[] };
          for (const { position } of value) expect(position.index).toBe(next++);
        }
        await follower.return?.();
      } catch (error) {
        expect((error as { code?: string }).code).toBe('trimmed');
      }
    },
  },
];
