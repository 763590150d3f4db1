import { expect, test } from 'vitest';
import { GrpcCode } from '@tenure/grpc-server';
import { settle, WatchBench } from './testing/watch-bench.ts';
import { VirtualClock } from '@tenure/test-support';

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1');

test('ids: from 0 up, or chosen by the client, never one in use', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a');
  call.create('a', { watchId: 2n });
  call.create('a', { watchId: -7n });
  call.create('a');
  call.create('a');
  call.create('a', { watchId: 3n });
  call.request({ case: 'cancelRequest', value: { watchId: 3n } });
  call.create('a', { watchId: 3n });
  expect(call.brief()).toEqual([
    '#0 r1 created',
    '#2 r1 created',
    '#-7 r1 created',
    '#1 r1 created',
    '#3 r1 created',
    '#-1 r1 created canceled "mvcc: duplicate watch ID provided on the WatchStream"',
    '#3 r1 canceled',
    '#3 r1 created',
  ]);
});

test("an invalid watch is refused with etcd's reason, and takes no id", () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('b', { rangeEnd: bytes('a') });
  call.create('b', { rangeEnd: bytes('b') });
  call.create('b', { startRevision: -1n });
  call.create('b');
  expect(call.brief()).toEqual([
    '#-1 r1 created canceled "mvcc: watcher range is empty"',
    '#-1 r1 created canceled "mvcc: watcher range is empty"',
    '#-1 r1 created canceled "etcdserver: mvcc: required revision has been compacted"',
    '#0 r1 created',
  ]);
});

test('a cancellation is answered once; unknown ids and unknown requests are ignored', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a');
  call.request({ case: 'cancelRequest', value: { watchId: 0n } });
  call.request({ case: 'cancelRequest', value: { watchId: 0n } });
  call.request({ case: 'cancelRequest', value: { watchId: 99n } });
  call.request(undefined);
  call.requestRaw(Buffer.from([0x7a, 0x00]));
  bench.put('a');
  expect(call.brief()).toEqual(['#0 r1 created', '#0 r1 canceled']);
  expect(bench.service.counts.watchers).toBe(0);
  expect(call.status).toBeUndefined();
});

test('bytes that are not a request end the call as in etcd', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a');
  call.requestRaw(Buffer.from([0x0a, 0x7f, 0x01]));
  expect(call.status?.code).toBe(GrpcCode.internal);
  expect(bench.service.counts).toMatchObject({ streams: 0, watchers: 0 });
  const other = bench.open();
  other.requestRaw(Buffer.from([0x0a, 0x02, 0x10, 0x01]));
  expect(other.status?.message).toMatch(/: proto: wrong wireType = 0 for field RangeEnd$/);
});

test('a compacted start cancels with the compact revision; its id stays taken until the client cancels', async () => {
  const bench = new WatchBench();
  for (const value of ['2', '3', '4']) bench.put('a', value);
  bench.compact(3);
  const call = bench.open();
  call.create('a', { startRevision: 2n, watchId: 5n });
  call.create('a', { startRevision: 3n });
  await settle();
  call.create('a', { watchId: 5n });
  call.request({ case: 'cancelRequest', value: { watchId: 5n } });
  call.create('a', { watchId: 5n });
  expect(call.brief()).toEqual([
    '#5 r4 created',
    '#0 r4 created',
    '#5 r4 canceled compacted@3',
    '#0 r4 put a@3 put a@4',
    '#-1 r4 created canceled "mvcc: duplicate watch ID provided on the WatchStream"',
    '#5 r4 canceled',
    '#5 r4 created',
  ]);
});

test('progress is reported at once when all events are sent, else as soon as they are', async () => {
  const bench = new WatchBench();
  bench.put('a', 'x'.repeat(500));
  const call = bench.open(100);
  call.create('b');
  call.request({ case: 'progressRequest', value: {} });
  call.create('a', { startRevision: 2n });
  call.request({ case: 'progressRequest', value: {} });
  call.request({ case: 'progressRequest', value: {} });
  await settle();
  // The response to both waits until the reader has taken the earlier ones.
  expect(call.bufferedBytes).toBeGreaterThan(500);
  expect(call.brief()).toEqual(['#0 r2 created', '#-1 r2', '#1 r2 created', '#1 r2 put a@2', '#-1 r2']);
  bench.put('c');
  call.request({ case: 'progressRequest', value: {} });
  expect(call.brief()).toEqual(['#-1 r3']);
});

test('progress is not reported to a stream without watches, nor later when it has some', async () => {
  const bench = new WatchBench();
  bench.put('a', 'x'.repeat(500));
  const call = bench.open(100);
  call.request({ case: 'progressRequest', value: {} });
  call.create('a', { startRevision: 2n });
  await settle();
  call.request({ case: 'progressRequest', value: {} });
  call.request({ case: 'cancelRequest', value: { watchId: 0n } });
  expect(call.brief()).toEqual(['#0 r2 created', '#0 r2 put a@2', '#0 r2 canceled']);
});

test('a watch from a future revision gets progress from its first revision on, also when it lags', async () => {
  const bench = new WatchBench();
  const call = bench.open(100);
  call.create('a', { startRevision: 3n });
  const ask = (): void => call.request({ case: 'progressRequest', value: {} });
  bench.put('a');
  ask();
  expect(call.brief()).toEqual(['#0 r1 created']);
  call.create('b', { startRevision: 9n });
  bench.put('a', 'x'.repeat(500));
  bench.put('a');
  ask();
  await settle();
  expect(call.brief()).toEqual(['#1 r2 created', '#0 r3 put a@3']);
  await settle();
  expect(call.brief()).toEqual(['#0 r4 put a@4']);
  call.request({ case: 'cancelRequest', value: { watchId: 1n } });
  ask();
  expect(call.brief()).toEqual(['#1 r4 canceled', '#-1 r4']);
});

test('progress requests with unread answers are answered once', () => {
  const bench = new WatchBench();
  const call = bench.open(1);
  call.create('a');
  for (let n = 0; n < 1000; n++) call.request({ case: 'progressRequest', value: {} });
  const { bufferedBytes } = call;
  expect(bufferedBytes).toBeLessThan(100);
  expect(call.brief()).toEqual(['#0 r1 created', '#-1 r1']);
});

test('idle watches with progress notify are notified at each interval; others are not', async () => {
  const bench = new WatchBench({ progressNotifyIntervalMs: 100 });
  const call = bench.open();
  call.create('a', { progressNotify: true });
  call.create('a');
  bench.put('b');
  const notifications: string[] = [];
  call.read();
  call.received.length = 0;
  while (notifications.length < 2) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    notifications.push(...call.brief());
  }
  expect(notifications).toEqual(['#0 r2', '#0 r2']);
  call.disconnect();
});

test('a watch that was sent events in the interval is not notified', async () => {
  const bench = new WatchBench({ progressNotifyIntervalMs: 100 });
  const call = bench.open();
  call.create('a', { progressNotify: true });
  const startedMs = performance.now();
  const lines: string[] = [];
  while (performance.now() - startedMs < 350) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    bench.put('a');
    lines.push(...call.brief());
  }
  expect(lines.filter((line) => !line.includes('put') && !line.includes('created'))).toEqual([]);
  call.disconnect();
});

test('requests are not read from a client that does not read the answers', () => {
  const bench = new WatchBench({ limits: { maxUnsentReplies: 10 } });
  const call = bench.open(1);
  for (let n = 0; n < 1000; n++) call.create('a');
  expect(call.paused).toBe(true);
  expect(bench.service.counts.watchers).toBe(10);
  for (let n = 0; n < 200; n++) call.read();
  expect(bench.service.counts.watchers).toBe(1000);
  expect(call.received).toHaveLength(1000);
});

test('limits refuse one more watch with a reason, and cancelled watches free their share', () => {
  const bench = new WatchBench({ limits: { maxWatchersPerStream: 2, maxWatchersPerServer: 3 } });
  const first = bench.open();
  for (let n = 0; n < 3; n++) first.create('a');
  const second = bench.open();
  for (let n = 0; n < 2; n++) second.create('a');
  first.request({ case: 'cancelRequest', value: { watchId: 0n } });
  second.create('a');
  expect(first.brief().slice(2, 3)).toEqual([
    '#-1 r1 created canceled "tenure: this stream has 2 watches, which is the limit; open another stream"',
  ]);
  expect(second.brief()).toEqual([
    '#0 r1 created',
    '#-1 r1 created canceled "tenure: this server has 3 watches, which is the limit; use another server"',
    '#1 r1 created',
  ]);
});

test('the keys of all watches together are limited, and an ended watch frees its share', () => {
  const bench = new WatchBench({ limits: { maxWatchedKeyBytes: 5000 } });
  const [first, second] = [bench.open(), bench.open()];
  first.create('a'.repeat(2000), { rangeEnd: bytes('b') });
  first.create('a', { rangeEnd: bytes('b'.repeat(2500)) });
  second.create('a'.repeat(2000), { rangeEnd: bytes('b') });
  first.request({ case: 'cancelRequest', value: { watchId: 1n } });
  second.create('a'.repeat(2000), { rangeEnd: bytes('b') });
  second.create('a'.repeat(2000), { rangeEnd: bytes('b') });
  first.disconnect();
  second.create('a'.repeat(2000), { rangeEnd: bytes('b') });
  expect(second.brief().map((line) => line.replace(/"tenure: the keys .* limit"/, 'refused'))).toEqual([
    '#-1 r1 created canceled refused',
    '#0 r1 created',
    '#-1 r1 created canceled refused',
    '#1 r1 created',
  ]);
});

test('a disconnected client leaves no state behind', () => {
  const bench = new WatchBench();
  const call = bench.open(1);
  call.create('a', { progressNotify: true });
  call.create('a', { startRevision: 1n });
  bench.put('a');
  call.disconnect();
  expect(bench.service.counts).toMatchObject({ streams: 0, watchers: 0, slowWatchers: 0 });
  bench.put('a');
});

test('an ended call leaves no timer behind', () => {
  const clock = new VirtualClock();
  const call = new WatchBench({ clock }).open();
  call.create('a', { progressNotify: true });
  call.create('a', { progressNotify: true });
  expect(clock.timers).toBe(1);
  call.disconnect();
  expect(clock.timers).toBe(0);
});

test('a half-closed call continues, as with etcd', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a');
  call.onHalfClose();
  bench.put('a');
  expect(call.brief()).toEqual(['#0 r1 created', '#0 r2 put a@2']);
});
