import { expect, test } from 'vitest';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { settle, WatchBench } from './testing/watch-bench.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1');

test('created comes first, then past events, then new ones', async () => {
  const bench = new WatchBench();
  bench.put('a', '1');
  bench.put('b', '1');
  bench.put('a', '2');
  const call = bench.open();
  call.create('a', { startRevision: 2n, prevKv: true });
  await settle();
  bench.put('a', '3');
  bench.delete('a');
  expect(call.brief()).toEqual([
    '#0 r4 created',
    '#0 r4 put a@2 put a@4 was 1',
    '#0 r5 put a@5 was 2',
    '#0 r6 delete a@6 was 3',
  ]);
});

test('the header names cluster, member and term', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a');
  call.read();
  expect(call.received[0]?.header).toMatchObject({ clusterId: 7n, memberId: 8n, revision: 1n, raftTerm: 3n });
});

test('a deletion has only the key and its revision', () => {
  const bench = new WatchBench();
  bench.put('a', 'before');
  const call = bench.open();
  call.create('a');
  bench.delete('a');
  call.read();
  expect(call.received[1]?.events[0]?.kv).toMatchObject({
    modRevision: 3n,
    createRevision: 0n,
    version: 0n,
    lease: 0n,
    value: new Uint8Array(),
  });
  expect(call.received[1]?.events[0]?.prevKv).toBeUndefined();
});

test('a watch from a future revision gets no earlier event', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a', { startRevision: 4n });
  call.create('a', { startRevision: 2n ** 63n - 1n });
  for (const value of ['2', '3', '4', '5']) bench.put('a', value);
  expect(call.brief()).toEqual(['#0 r1 created', '#1 r1 created', '#0 r4 put a@4', '#0 r5 put a@5']);
});

test('filters leave out puts or deletions, and a response without events is not sent', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a', { filters: [0] });
  call.create('a', { filters: [1] });
  call.create('a', { filters: [0, 1, 7 as 1] });
  bench.put('a');
  bench.delete('a');
  expect(call.brief().slice(3)).toEqual(['#1 r2 put a@2', '#0 r3 delete a@3']);
});

test('a revision with several changes arrives in one response', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a', { rangeEnd: bytes('c') });
  bench.put('b');
  bench.writeTogether([
    ['a', '1'],
    ['c', '1'],
    ['b', undefined],
  ]);
  expect(call.brief()).toEqual(['#0 r1 created', '#0 r2 put b@2', '#0 r3 put a@3 delete b@3']);
});

test('a compaction does not affect a synced watch, nor one from a future revision', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a');
  call.create('a', { startRevision: 5n });
  for (const value of ['2', '3', '4']) bench.put('a', value);
  bench.compact(4);
  bench.put('a', '5');
  expect(call.brief().slice(2)).toEqual([
    '#0 r2 put a@2',
    '#0 r3 put a@3',
    '#0 r4 put a@4',
    '#0 r5 put a@5',
    '#1 r5 put a@5',
  ]);
});

test('a stalled reader costs no memory, delays no other, and misses no event', async () => {
  const bench = new WatchBench({ limits: { maxResponseBytes: 4096 } });
  const stalled = bench.open(2048);
  const lively = bench.open(2048);
  stalled.create('a', { rangeEnd: bytes('b') });
  lively.create('a', { rangeEnd: bytes('b') });
  lively.read();
  for (let n = 0; n < 500; n++) {
    bench.put(`a${n % 7}`, 'x'.repeat(100));
    lively.read();
    expect(lively.received.at(-1)?.events.at(-1)?.kv?.modRevision).toBe(BigInt(bench.revision));
  }
  await settle();
  expect(bench.service.counts.slowWatchers).toBe(1);
  expect(stalled.highWaterBytes).toBeLessThan(2048 + 4096 + 1024);
  while (bench.service.counts.slowWatchers > 0) {
    stalled.read();
    await settle();
  }
  stalled.read();
  const revisions = stalled.received.flatMap(({ events }) => events.map(({ kv }) => Number(kv!.modRevision)));
  expect(revisions).toEqual(Array.from({ length: 500 }, (_, n) => n + 2));
  bench.put('a', 'live again');
  stalled.read();
  expect(stalled.received.at(-1)?.events[0]?.kv?.modRevision).toBe(502n);
});

test('a stalled watch with compacted revisions is cancelled when its reader resumes', async () => {
  const bench = new WatchBench();
  const call = bench.open(1);
  call.create('a');
  for (const value of ['2', '3', '4']) bench.put('a', value);
  bench.compact(4);
  call.read();
  await settle();
  expect(call.brief()).toEqual(['#0 r1 created', '#0 r4 canceled compacted@4']);
});

test('watches that lag on one stream take turns', async () => {
  const bench = new WatchBench({ limits: { maxResponseBytes: 200 } });
  for (let n = 0; n < 20; n++)
    bench.writeTogether([
      ['a', 'x'.repeat(100)],
      ['b', 'x'.repeat(100)],
    ]);
  const call = bench.open();
  call.create('a', { startRevision: 2n });
  call.create('b', { startRevision: 2n });
  await settle();
  call.read();
  const order = call.received.filter(({ events }) => events.length > 0).map(({ watchId }) => Number(watchId));
  expect(order).toHaveLength(20);
  expect(order).toEqual(order.map((_, n) => n % 2));
});

test('fragments: only on request, each within the limit, all but the last marked, none in between', async () => {
  const bench = new WatchBench({ maxRequestBytes: 1000, limits: { fragmentOverheadBytes: 0 } });
  const call = bench.open();
  call.create('a', { rangeEnd: bytes('b'), fragment: true });
  call.create('a', { rangeEnd: bytes('b') });
  call.read();
  call.received.length = 0;
  bench.writeTogether(Array.from({ length: 10 }, (_, n) => [`a${n}`, 'x'.repeat(300)] as const));
  bench.put('a', 'x'.repeat(5000));
  call.read();
  const split = call.received.filter(({ watchId }) => watchId === 0n);
  expect(split.map(({ fragment, events }) => [fragment, events.length])).toEqual([
    [true, 2],
    [true, 2],
    [true, 2],
    [true, 2],
    [false, 2],
    [false, 1],
  ]);
  expect(call.received.filter(({ watchId }) => watchId === 1n).map(({ events }) => events.length)).toEqual([10, 1]);
  expect(call.received.map(({ watchId }) => Number(watchId))).toEqual([0, 0, 0, 0, 0, 1, 0, 1]);
});

test('a fragment has one event when two would pass the limit', () => {
  const bench = new WatchBench({ maxRequestBytes: 1000, limits: { fragmentOverheadBytes: 0 } });
  const call = bench.open();
  call.create('a', { rangeEnd: bytes('b'), fragment: true });
  bench.writeTogether(Array.from({ length: 3 }, (_, n) => [`a${n}`, 'x'.repeat(600)] as const));
  expect(call.brief().slice(1)).toEqual(['#0 r2 fragment put a0@2', '#0 r2 fragment put a1@2', '#0 r2 put a2@2']);
});

test('close ends every stream with the given status, and each later one', () => {
  const bench = new WatchBench();
  const calls = [bench.open(), bench.open(1)];
  for (const call of calls) call.create('a');
  const stopped = new GrpcStatus(GrpcCode.unavailable, 'etcdserver: server stopped');
  bench.service.close(stopped);
  calls.push(bench.open());
  expect(calls.map(({ status }) => status)).toEqual([stopped, stopped, stopped]);
  expect(bench.service.counts).toMatchObject({ streams: 0, watchers: 0 });
  bench.put('a');
});

test('counts the events that it has sent', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a');
  call.create('a', { rangeEnd: bytes('\0') });
  bench.put('a');
  bench.put('b');
  expect(bench.service.counts).toEqual({ streams: 1, watchers: 2, slowWatchers: 0, eventsSent: 3 });
});
