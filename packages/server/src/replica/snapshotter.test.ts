import { StateMachine } from '@tenure/core';
import { expect, test } from 'vitest';
import { logStart } from '../engines/chain-hash.ts';
import { EngineError } from '../engines/engine-error.ts';
import type { LogEngine, Position } from '../engines/log-engine.ts';
import { memoryEngine } from '../engines/memory/memory-engine.ts';
import { maxKeptSnapshots, Snapshotter } from './snapshotter.ts';
import { systemClock } from '../time/system-clock.ts';

const entriesPerSnapshot = 5;

/** A growing log, and the snapshotter that trims it. The test sets the position of the slowest follower. */
class GrowingLog {
  readonly engine: LogEngine = memoryEngine();
  readonly state = new StateMachine();
  slowest = Infinity;
  /** The positions of the last snapshots. */
  savedAt = 0;
  readonly #snapshotter: Snapshotter;
  #position: Position = logStart;
  #saved: () => void = () => {};

  constructor(thresholds = { entries: entriesPerSnapshot, bytes: Number.MAX_SAFE_INTEGER }) {
    this.#snapshotter = new Snapshotter({
      engine: this.engine,
      state: this.state,
      thresholds,
      position: () => this.#position,
      slowestFollower: () => this.slowest,
      saved: () => this.#saved(),
      putOff: (error) => expect.fail(error.message),
      failed: (error) => expect.fail(error.message),
      clock: systemClock,
      entriesSinceSnapshot: 0,
    });
  }

  /** Appends until a snapshot has been saved and the log trimmed. */
  async untilSnapshot(): Promise<void> {
    const saved = new Promise<void>((resolve) => (this.#saved = resolve));
    const bytes = Buffer.from('entry');
    for (let entry = 0; entry < entriesPerSnapshot; entry += 1) {
      this.#position = await this.engine.append([bytes], this.#position);
      this.state.apply({ index: this.#position.index, epoch: 0, timeMs: 0, commands: [] });
      this.#snapshotter.appended(bytes.length);
    }
    await saved;
    this.savedAt = this.#position.index;
  }

  /** The first entry that a new reader can still read. */
  async oldest(): Promise<number> {
    for (let from = 0; ; from += 1) {
      // The engine checks the trim before the hash, so this position is refused either as trimmed or as of another log.
      const reading = this.engine.follow({ index: from, hash: 'none' }, new AbortController().signal);
      const refusal = await reading[Symbol.asyncIterator]()
        .next()
        .catch((error: unknown) => error);
      if (!(refusal instanceof EngineError)) throw new Error('a position with a wrong hash was accepted');
      if (refusal.code !== 'trimmed') return from + 1;
    }
  }
}

test('keeps the log between the last two snapshots for returning servers', async () => {
  const log = new GrowingLog();
  await log.untilSnapshot();
  expect(await log.oldest()).toBe(1);
  const before = log.savedAt;
  await log.untilSnapshot();
  expect(await log.oldest()).toBe(before + 1);
});

test('keeps the entries that the slowest linked follower has not applied, up to the limit', async () => {
  const log = new GrowingLog();
  log.slowest = 3;
  const saves: number[] = [];
  for (let snapshot = 1; snapshot <= maxKeptSnapshots; snapshot += 1) {
    await log.untilSnapshot();
    saves.push(log.savedAt);
    expect(await log.oldest()).toBe(snapshot === 1 ? 1 : 4);
  }
  for (let beyond = 0; beyond < 3; beyond += 1) {
    await log.untilSnapshot();
    expect(await log.oldest()).toBe((saves[beyond] as number) + 1);
  }
  log.slowest = log.savedAt;
  const last = log.savedAt;
  await log.untilSnapshot();
  expect(await log.oldest()).toBe(last + 1);
});

test('also counts snapshots that were due by size', async () => {
  const log = new GrowingLog({ entries: 1_000_000, bytes: entriesPerSnapshot * 5 });
  log.slowest = 0;
  await log.untilSnapshot();
  const first = log.savedAt;
  for (let snapshot = 0; snapshot < maxKeptSnapshots; snapshot += 1) await log.untilSnapshot();
  expect(await log.oldest()).toBe(first + 1);
});
