import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { History } from '../mvcc/history.ts';
import type { KvEvent } from '../mvcc/kv-types.ts';
import { type WatchBatch, WatchHub } from './watch-hub.ts';
import { rangeHolds, watchRange } from './watch-range.ts';
import type { Watcher } from './watcher.ts';

/** The naive model: all events forever in one list, and the batches handed to each watcher. */
class Model implements History {
  readonly all: KvEvent[][] = [[], []];
  compactRevision = -1;

  get currentRevision(): number {
    return this.all.length - 1;
  }

  eventsAt(revision: number): readonly KvEvent[] {
    const events = this.all[revision];
    if (events === undefined || revision < this.compactRevision) throw new Error(`revision ${revision} is not held`);
    return events;
  }

  /** As vague as the contract allows: exact only for every other revision. */
  unchangedBefore(key: string, rangeEnd: string, from: number): number {
    if (from < this.compactRevision) throw new Error(`revision ${from} is not held`);
    const range = watchRange(key, rangeEnd)!;
    const next = this.all.findIndex((events, at) => at >= from && events.some(({ kv }) => rangeHolds(range, kv.key)));
    if (from % 2 === 0) return from;
    return next === -1 ? Number.POSITIVE_INFINITY : next;
  }

  write(changes: readonly { key: string; put: boolean }[]): void {
    const revision = this.all.length;
    this.all.push(changes.map(({ key, put }) => eventOf(key, put, revision)));
  }
}

function eventOf(key: string, put: boolean, modRevision: number): KvEvent {
  const kv = { key, value: put ? 'value' : '', createRevision: 0, modRevision, version: 0, lease: 0n };
  return { type: put ? 'put' : 'delete', kv, prevKv: undefined };
}

interface Probe {
  readonly key: string;
  readonly rangeEnd: string;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  /** The first revision that it must receive. */
  readonly from: number;
  readonly batches: (readonly KvEvent[])[];
  /** Set when it ended: the reported compact revision, or the revision at which it was cancelled. */
  ended: { compacted: number } | 'cancelled' | undefined;
}

class Run {
  readonly model = new Model();
  readonly hub = new WatchHub<Probe>(this.model);
  readonly watchers: Watcher<Probe>[] = [];

  watch(key: string, rangeEnd: string, offset: number | undefined, noPut: boolean, noDelete: boolean): void {
    const range = watchRange(key, rangeEnd);
    if (range === undefined) return;
    const { currentRevision } = this.model;
    const startRevision = offset === undefined ? 0 : Math.max(1, currentRevision + offset);
    const from = startRevision === 0 ? currentRevision + 1 : startRevision;
    const probe: Probe = { key, rangeEnd, noPut, noDelete, from, batches: [], ended: undefined };
    this.watchers.push(this.hub.watch(probe, { range, startRevision, noPut, noDelete, prevKv: false }));
  }

  /** `sendable` returns for each batch in turn whether its reader accepts it. */
  advance(maxEvents: number, sendable: (batch: WatchBatch<Probe>) => boolean): void {
    for (const batch of this.hub.advance({ maxEvents, maxBytes: 1000 }).batches) {
      if (sendable(batch)) batch.watcher.owner.batches.push(batch.events);
      else this.hub.fallBehind(batch);
    }
  }

  pull(watcher: Watcher<Probe>, maxEvents: number): void {
    const pulled = this.hub.pull(watcher, { maxEvents, maxBytes: 1000 });
    if (pulled.kind === 'compacted') watcher.owner.ended = { compacted: pulled.compactRevision };
    else if (pulled.events.length > 0) watcher.owner.batches.push(pulled.events);
  }

  cancel(watcher: Watcher<Probe>): void {
    this.hub.cancel(watcher);
    watcher.owner.ended ??= 'cancelled';
  }

  settle(): void {
    while (this.hub.revision < this.model.currentRevision) this.advance(3, () => true);
    for (const watcher of this.watchers) {
      while (watcher.state === 'lagging') this.pull(watcher, 3);
    }
  }

  check(): void {
    for (const watcher of this.watchers) checkProbe(this.model, watcher.owner);
    const open = this.watchers.filter(({ state }) => state !== 'closed');
    expect(this.hub.watcherCount).toBe(open.length);
    expect(this.hub.laggingCount).toBe(open.filter(({ state }) => state === 'lagging').length);
  }
}

/** Filtered, ordered, unique, atomic, reliable, resumable; and an end only with its reason. */
function checkProbe(model: Model, probe: Probe): void {
  const got = probe.batches.flat();
  const last = got.at(-1)?.kv.modRevision ?? probe.from - 1;
  const wanted = model.all
    .slice(probe.from)
    .flat()
    .filter((event) => isWanted(probe, event));
  expect(got).toEqual(wanted.slice(0, got.length));
  for (const [i, batch] of probe.batches.entries()) {
    expect(batch.length).toBeGreaterThan(0);
    const next = probe.batches[i + 1];
    if (next !== undefined) expect(next[0]!.kv.modRevision).toBeGreaterThan(batch.at(-1)!.kv.modRevision);
  }
  const missing = wanted[got.length];
  // A revision is delivered whole, so the first missing one is later than the last delivered one.
  if (missing !== undefined) expect(missing.kv.modRevision).toBeGreaterThan(last);
  if (probe.ended === undefined) expect(missing).toBeUndefined();
  else if (probe.ended !== 'cancelled') {
    // Only revisions that it has not received may be reported as compacted.
    expect(probe.ended.compacted).toBeGreaterThan(Math.max(last, probe.from - 1));
  }
}

function isWanted({ key, rangeEnd, noPut, noDelete }: Probe, event: KvEvent): boolean {
  if (event.type === 'put' ? noPut : noDelete) return false;
  const at = event.kv.key;
  const start = key === '' ? '\0' : key;
  if (rangeEnd === '') return at === start;
  return at >= start && (rangeEnd === '\0' || at < rangeEnd);
}

const key = fc.constantFrom('a', 'aa', 'b', 'ba', 'c');
const change = fc.record({ key, put: fc.boolean() });
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('write'), changes: fc.array(change, { minLength: 1, maxLength: 4 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('watch'),
      key: fc.oneof(key, fc.constant('')),
      rangeEnd: fc.oneof(fc.constant(''), fc.constant('\0'), key),
      offset: fc.option(fc.integer({ min: -8, max: 4 }), { nil: undefined }),
      noPut: fc.boolean(),
      noDelete: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('advance'), max: fc.integer({ min: 1, max: 9 }), mask: fc.nat(255) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pull'), which: fc.nat(20), max: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel'), which: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('compact'), behind: fc.nat(6) }) },
);

function perform(run: Run, each: typeof step extends fc.Arbitrary<infer T> ? T : never): void {
  if ('changes' in each) run.model.write(each.changes);
  else if ('rangeEnd' in each) run.watch(each.key, each.rangeEnd, each.offset, each.noPut, each.noDelete);
  else if ('mask' in each) {
    let turn = 0;
    run.advance(each.max, () => ((each.mask >> (turn++ % 8)) & 1) === 1);
  } else if ('behind' in each) {
    run.model.compactRevision = Math.max(run.model.compactRevision, run.model.currentRevision - each.behind);
  } else {
    const watcher = run.watchers[each.which % Math.max(run.watchers.length, 1)];
    if (watcher === undefined) return;
    if (each.do === 'cancel') run.cancel(watcher);
    else if ('max' in each && watcher.state === 'lagging') run.pull(watcher, each.max);
  }
}

test('every watcher gets all its events, once, in order, in whole revisions', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const run = new Run();
      for (const each of steps) perform(run, each);
      run.settle();
      run.check();
    }),
    { numRuns: 1000 },
  );
});

test('a long history is read completely, dense and sparse, with and without skips', () => {
  const stretch = fc.record({ gap: fc.oneof(fc.nat(3), fc.nat(700)), hits: fc.nat(20) });
  fc.assert(
    fc.property(fc.array(stretch, { maxLength: 8 }), fc.integer({ min: 1, max: 600 }), (stretches, maxEvents) => {
      const run = new Run();
      for (const { gap, hits } of stretches) {
        for (let n = 0; n < gap; n++) run.model.write([{ key: 'other', put: true }]);
        for (let n = 0; n < hits; n++) run.model.write([{ key: 'a', put: true }]);
      }
      run.hub.advance({ maxEvents: 1, maxBytes: 1 });
      run.watch('a', '', 1 - run.model.currentRevision, false, false);
      run.watch('a', 'b', 1 - run.model.currentRevision, false, false);
      for (const watcher of run.watchers) while (watcher.state === 'lagging') run.pull(watcher, maxEvents);
      run.settle();
      run.check();
    }),
    { numRuns: 50 },
  );
});

test('one pull does no more than its budget, even when nothing can be skipped', () => {
  const run = new Run();
  for (let n = 0; n < 1000; n++) run.model.write([{ key: 'other', put: true }]);
  run.model.unchangedBefore = (_key, _rangeEnd, from) => from;
  run.hub.advance({ maxEvents: 1, maxBytes: 1 });
  run.watch('a', '', 1 - run.model.currentRevision, false, false);
  const [watcher] = run.watchers;
  let pulls = 0;
  while (watcher?.state === 'lagging') {
    run.pull(watcher, 100);
    pulls += 1;
  }
  expect(pulls).toBe(20);
});

test('a synced watcher cannot pull, and a lagging watcher cannot fall behind', () => {
  const run = new Run();
  run.watch('a', '', undefined, false, false);
  const watcher = run.watchers[0]!;
  expect(() => run.pull(watcher, 1)).toThrow('a synced watcher has nothing to pull');
  run.model.write([{ key: 'a', put: true }]);
  const [batch] = run.hub.advance({ maxEvents: 1, maxBytes: 1 }).batches;
  run.hub.fallBehind(batch!);
  expect(() => run.hub.fallBehind(batch!)).toThrow('only a synced watcher falls behind');
});
