import { type History, type KvEvent, StateMachine } from '@tenure/core';
import { responseHeaderPrefix } from '@tenure/codec';
import { expect, inject, test } from 'vitest';
import { ScriptedCall } from './testing/scripted-call.ts';
import { settle, WatchBench } from './testing/watch-bench.ts';
import { WatchService } from './watch-service.ts';
import { systemClock } from '../time/system-clock.ts';
import { systemRandom } from '../random/system-random.ts';

const revisionCount = { commit: 200_000, ci: 1_000_000, soak: 10_000_000 }[inject('effort')];

/** A history of many revisions without memory cost, each a put of one of a thousand keys. */
class LongHistory implements History {
  currentRevision = revisionCount;
  readonly compactRevision = -1;

  eventsAt(revision: number): readonly KvEvent[] {
    if (revision < 2) return [];
    const key = `key ${revision % 1000}`;
    const kv = { key, value: 'value', createRevision: 2, modRevision: revision, version: 1, lease: 0n };
    return [{ type: 'put', kv, prevKv: undefined }];
  }

  unchangedBefore(_key: string, _rangeEnd: string, from: number): number {
    return from;
  }
}

function serviceOver(history: History): WatchService {
  return new WatchService({
    clock: systemClock,
    random: systemRandom,
    history,
    access: new StateMachine(),
    headerPrefix: responseHeaderPrefix(1n, 2n),
    raftTerm: () => 1,
    maxRequestBytes: 1024 * 1024,
    progressNotifyIntervalMs: 600_000,
  });
}

test('while watches catch up over a long history, the event loop turns every few milliseconds', async () => {
  const history = new LongHistory();
  const service = serviceOver(history);
  const everything = new ScriptedCall(1024 * 1024);
  const oneKey = new ScriptedCall(1024 * 1024);
  for (const call of [everything, oneKey]) service.handle(call);
  everything.create('\0', { rangeEnd: Buffer.from('\0'), startRevision: 1n });
  oneKey.create('key 7', { startRevision: 1n });

  let eventCount = 0;
  // Processor time and not wall time, which also depends on other processes.
  const turnsMs: number[] = [];
  let before = process.cpuUsage();
  while (service.counts.slowWatchers > 0) {
    await new Promise((resolve) => setImmediate(resolve));
    const { user, system } = process.cpuUsage(before);
    turnsMs.push((user + system) / 1000);
    everything.read();
    for (const { events } of everything.received.splice(0)) eventCount += events.length;
    before = process.cpuUsage();
  }
  expect(eventCount).toBe(revisionCount - 1);
  oneKey.read();
  expect(oneKey.received.flatMap(({ events }) => events)).toHaveLength(revisionCount / 1000);
  // Garbage collection prolongs a turn now and then, so the bound is on the median.
  turnsMs.sort((one, other) => one - other);
  expect(turnsMs.length).toBeGreaterThan(20);
  expect(turnsMs[Math.floor(turnsMs.length / 2)]).toBeLessThan(20);
});

test('new events reach a synced watch while others catch up', async () => {
  const history = new LongHistory();
  const service = serviceOver(history);
  const [behind, live] = [new ScriptedCall(1024 * 1024), new ScriptedCall(1024 * 1024)];
  for (const call of [behind, live]) service.handle(call);
  behind.create('nothing', { rangeEnd: Buffer.from('o'), startRevision: 1n });
  live.create('key', { rangeEnd: Buffer.from('l') });
  live.read();
  let revisions = 0;
  while (service.counts.slowWatchers > 0) {
    history.currentRevision += 1;
    revisions += 1;
    service.revisionAdvanced();
    live.read();
    expect(live.received.at(-1)?.events[0]?.kv?.modRevision).toBe(BigInt(history.currentRevision));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(revisions).toBeGreaterThan(1);
});

test('a lagging watch makes progress even with more new events than a slice can deliver', async () => {
  const bench = new WatchBench({ limits: { sliceMs: 0 } });
  for (let n = 0; n < 100; n++) bench.put('old');
  const [behind, busy] = [bench.open(), bench.open()];
  behind.create('old', { startRevision: 2n });
  for (let n = 0; n < 50; n++) busy.create('new');
  for (let n = 0; n < 20; n++) {
    bench.put('new');
    await new Promise((resolve) => setImmediate(resolve));
  }
  behind.read();
  expect(behind.received.flatMap(({ events }) => events)).toHaveLength(100);
  await settle();
  await settle();
  await settle();
  busy.read();
});

test('a watch that is cancelled between an event and its delivery gets no more responses', async () => {
  const bench = new WatchBench({ limits: { sliceMs: 0 } });
  const call = bench.open();
  for (let n = 0; n < 3; n++) call.create('a');
  bench.put('a');
  await new Promise((resolve) => setImmediate(resolve));
  expect(call.brief().slice(3)).toEqual(['#0 r2 put a@2']);
  call.request({ case: 'cancelRequest', value: { watchId: 1n } });
  await settle();
  expect(call.brief()).toEqual(['#1 r2 canceled', '#2 r2 put a@2']);
});

test('a progress request before the delivery of new events is answered after it', async () => {
  const bench = new WatchBench({ limits: { sliceMs: 0 } });
  const [watching, idle] = [bench.open(), bench.open()];
  for (let n = 0; n < 2; n++) watching.create('a');
  idle.create('b');
  bench.put('a');
  for (const call of [watching, idle]) call.request({ case: 'progressRequest', value: {} });
  expect(idle.brief()).toEqual(['#0 r1 created']);
  await settle();
  expect(watching.brief().slice(2)).toEqual(['#0 r2 put a@2', '#1 r2 put a@2', '#-1 r2']);
  expect(idle.brief()).toEqual(['#-1 r2']);
});

test('an entry with many revisions is one response per watch', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a');
  const put = { key: 'a', value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
  bench.apply(...Array.from({ length: 5 }, () => ({ kind: 'put', put }) as const));
  expect(call.brief()).toEqual(['#0 r1 created', '#0 r6 put a@2 put a@3 put a@4 put a@5 put a@6']);
});

test('an entry that compacts up to its own head cancels a watch that has not seen it, with the reason', async () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a');
  const put = { key: 'a', value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
  bench.apply({ kind: 'put', put }, { kind: 'put', put }, { kind: 'compact', revision: 3 });
  await settle();
  expect(call.brief()).toEqual(['#0 r1 created', '#0 r3 canceled compacted@3']);
});
