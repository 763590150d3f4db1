import { type AuthChange, type CommandBody, invalidToken, oldToken, type Permission } from '@tenure/core';
import { expect, test } from 'vitest';
import type { ScriptedCall } from './testing/scripted-call.ts';
import { settle, WatchBench } from './testing/watch-bench.ts';
import type { WatchLimits } from './watch-limits.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1');
const readAToC: Permission = { type: 'read', key: 'a', rangeEnd: 'c' };
const lost = 'canceled "etcdserver: permission denied"';
const withoutAlice: AuthChange = { kind: 'revokeRole', user: 'alice', role: 'alice' };
const put = (key: string): CommandBody => ({
  kind: 'put',
  put: { key, value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false },
});
const auth = (change: AuthChange): CommandBody => ({ kind: 'auth', change });

/** Authentication is enabled; alice may read the keys from a up to c. */
function securedBench(options: ConstructorParameters<typeof WatchBench>[0] = {}): WatchBench {
  const bench = new WatchBench(options);
  bench.addUser('alice', readAToC);
  bench.enableAuth();
  return bench;
}

/** Each turn does one step: it checks one watch, or sends one response. */
async function slicedBench(limits: Partial<WatchLimits> = {}): Promise<WatchBench> {
  const bench = securedBench({ limits: { ...limits, sliceMs: 0 } });
  await settle();
  return bench;
}

function openAs(bench: WatchBench, user: string, bufferBytes?: number): ScriptedCall {
  const call = bench.open(bufferBytes);
  call.requester = bench.requester(user);
  return call;
}

/** Everything that the client receives until the service is idle. */
async function briefly(call: ScriptedCall): Promise<string[]> {
  call.read();
  await settle();
  return call.brief();
}

test('a refusal has the text of etcd, uses no id, and leaves other watches of the stream alone', () => {
  const bench = securedBench();
  const call = openAs(bench, 'alice');
  call.create('a');
  call.create('c');
  call.requester = bench.requester();
  call.create('a', { watchId: 5n });
  call.requester = invalidToken;
  call.create('a');
  call.requester = oldToken;
  call.create('a');
  call.requester = { user: 'unknown', authRevision: bench.state.auth.revision };
  call.create('a');
  call.requester = undefined;
  call.create('a');
  call.requester = bench.requester('alice');
  call.create('b');
  bench.put('a');
  expect(call.brief()).toEqual([
    '#0 r1 created',
    '#-1 r1 created canceled "rpc error: code = PermissionDenied desc = etcdserver: permission denied"',
    '#-1 r1 created canceled "rpc error: code = InvalidArgument desc = etcdserver: user name is empty"',
    '#-1 r1 created canceled "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token"',
    '#-1 r1 created canceled "rpc error: code = InvalidArgument desc = etcdserver: revision of auth store is old"',
    '#-1 r1 created canceled "rpc error: code = PermissionDenied desc = etcdserver: permission denied"',
    '#-1 r1 created canceled "rpc error: code = InvalidArgument desc = etcdserver: user name is empty"',
    '#1 r1 created',
    '#0 r2 put a@2',
  ]);
});

test('a permission is checked after a negative start revision, and before everything else, as in etcd 3.6', () => {
  const bench = securedBench();
  bench.put('z');
  bench.compact(2);
  const call = openAs(bench, 'alice');
  call.create('a', { watchId: 7n });
  call.create('z', { startRevision: -1n });
  call.create('z', { rangeEnd: bytes('y') });
  call.create('z', { watchId: 7n });
  call.create('z', { startRevision: 1n });
  const denied = '#-1 r2 created canceled "rpc error: code = PermissionDenied desc = etcdserver: permission denied"';
  expect(call.brief()).toEqual([
    '#7 r2 created',
    '#-1 r2 created canceled "etcdserver: mvcc: required revision has been compacted"',
    denied,
    denied,
    denied,
  ]);
});

test.each<[permission: Permission, allowed: (readonly [string, string])[], denied: (readonly [string, string])[]]>([
  [
    { type: 'read', key: 'k', rangeEnd: '' },
    [['k', '']],
    [
      ['k', '\0'],
      ['k', 'l'],
      ['', '\0'],
      ['', ''],
      ['k\0', ''],
    ],
  ],
  [
    { type: 'readWrite', key: 'k', rangeEnd: '\0' },
    [
      ['k', '\0'],
      ['l', '\0'],
      ['l', ''],
      ['k', 'z'],
    ],
    [
      ['j', '\0'],
      ['\0', '\0'],
    ],
  ],
  [{ type: 'read', key: '\0', rangeEnd: '' }, [['', '']], [['', '\0']]],
  [{ type: 'read', key: '\0', rangeEnd: '\0' }, [['', '\0']], []],
  [{ type: 'write', key: '\0', rangeEnd: '\0' }, [], [['k', '']]],
  [{ type: 'read', key: 'a', rangeEnd: 'c' }, [['a', 'c']], [['b', '\0']]],
])('with %j the range is checked as requested, from a key on too', (permission, allowed, denied) => {
  const bench = new WatchBench();
  bench.addUser('alice', permission);
  bench.enableAuth();
  const call = openAs(bench, 'alice');
  for (const [key, rangeEnd] of allowed) call.create(key, { rangeEnd: bytes(rangeEnd) });
  expect(call.brief()).toEqual(allowed.map((_, id) => `#${id} r1 created`));
  for (const [key, rangeEnd] of denied) call.create(key, { rangeEnd: bytes(rangeEnd) });
  for (const line of call.brief()) expect(line).toContain('canceled "rpc error: code = PermissionDenied');
  // The check of an open watch agrees with that of its creation.
  bench.change({ kind: 'addRole', role: 'other' });
  expect(bench.service.counts.watchers).toBe(allowed.length);
});

test.each<[string, AuthChange]>([
  ['its role is revoked', withoutAlice],
  ['its permission is revoked', { kind: 'revokePermission', role: 'alice', key: 'a', rangeEnd: 'c' }],
  [
    'its permission becomes one to write',
    { kind: 'grantPermission', role: 'alice', permission: { ...readAToC, type: 'write' } },
  ],
  ['the user is deleted', { kind: 'deleteUser', user: 'alice' }],
  ['the role is deleted', { kind: 'deleteRole', role: 'alice' }],
])('an idle watch ends when %s, and its id is free', async (_, change) => {
  const bench = securedBench();
  const [call, ofRoot] = [openAs(bench, 'alice'), openAs(bench, 'root')];
  call.create('a', { watchId: 3n });
  ofRoot.create('', { rangeEnd: bytes('\0') });
  bench.change(change);
  expect(call.brief()).toEqual(['#3 r1 created', `#3 r1 ${lost}`]);
  call.request({ case: 'cancelRequest', value: { watchId: 3n } });
  bench.put('a');
  expect(await briefly(call)).toEqual([]);
  expect(ofRoot.brief()).toEqual(['#0 r1 created', '#0 r2 put a@2']);
  call.requester = bench.requester('root');
  call.create('a', { watchId: 3n });
  expect(call.brief()).toEqual(['#3 r2 created']);
  expect(bench.service.counts).toMatchObject({ watchers: 2, slowWatchers: 0 });
});

test('a watch from before authentication was enabled has no user, and ends', () => {
  const bench = new WatchBench();
  const call = bench.open();
  call.create('a');
  bench.enableAuth();
  call.request({ case: 'progressRequest', value: {} });
  expect(call.brief()).toEqual(['#0 r1 created', `#0 r1 ${lost}`]);
});

test('a new password and changes that concern others do not end a watch', () => {
  const bench = securedBench();
  const call = openAs(bench, 'alice');
  call.create('a', { rangeEnd: bytes('c') });
  bench.change({ kind: 'changePassword', user: 'alice', passwordHash: 'other' });
  bench.addUser('bob', readAToC);
  bench.change({ kind: 'deleteUser', user: 'bob' });
  bench.change({ kind: 'grantPermission', role: 'alice', permission: { type: 'read', key: 'x', rangeEnd: '' } });
  bench.change({ kind: 'disable' });
  bench.change(withoutAlice);
  bench.put('b');
  call.request({ case: 'progressRequest', value: {} });
  expect(call.brief()).toEqual(['#0 r1 created', '#0 r2 put b@2', '#-1 r2']);
  bench.change({ kind: 'enable' });
  expect(call.brief()).toEqual([`#0 r2 ${lost}`]);
});

test('no event of an entry is sent to a watch that loses its permission by the same entry', () => {
  const bench = securedBench();
  const call = openAs(bench, 'alice');
  call.create('a');
  bench.apply(auth(withoutAlice), put('a'));
  expect(call.brief()).toEqual(['#0 r1 created', `#0 r2 ${lost}`]);
});

test('events that were found before a change, and wait for their turn, are not sent after it', async () => {
  const bench = await slicedBench();
  const [call, ofRoot] = [openAs(bench, 'alice'), openAs(bench, 'root')];
  for (let n = 0; n < 3; n++) call.create('a');
  ofRoot.create('a');
  bench.put('a');
  await new Promise((resolve) => setImmediate(resolve));
  expect(call.brief().slice(3)).toEqual(['#0 r2 put a@2']);
  bench.change(withoutAlice);
  const rest = await briefly(call);
  expect(rest.sort()).toEqual([`#0 r2 ${lost}`, `#1 r2 ${lost}`, `#2 r2 ${lost}`]);
  expect(await briefly(ofRoot)).toEqual(['#0 r1 created', '#0 r2 put a@2']);
});

test('a watch that reads the history does not go on after it has lost its permission', async () => {
  const bench = await slicedBench({ maxEventsPerStep: 2 });
  for (let n = 0; n < 50; n++) bench.put('a');
  await settle();
  const call = openAs(bench, 'alice');
  call.create('a', { startRevision: 2n });
  await new Promise((resolve) => setImmediate(resolve));
  expect(bench.service.counts.slowWatchers).toBe(1);
  const before = call.brief();
  expect(before.length).toBeGreaterThan(1);
  bench.change(withoutAlice);
  expect(await briefly(call)).toEqual([`#0 r51 ${lost}`]);
  expect(bench.service.counts).toMatchObject({ watchers: 0, slowWatchers: 0 });
});

test('a watch whose client does not read ends as well, with nothing but the reason', async () => {
  const bench = securedBench();
  const call = openAs(bench, 'alice', 1);
  call.create('a');
  for (let n = 0; n < 5; n++) bench.put('a');
  expect(bench.service.counts.slowWatchers).toBe(1);
  bench.change(withoutAlice);
  expect(bench.service.counts).toMatchObject({ watchers: 0, slowWatchers: 0 });
  expect(await briefly(call)).toEqual(['#0 r1 created', `#0 r6 ${lost}`]);
});

test('a snapshot without the permission ends the watch before any of its events is sent', () => {
  const bench = securedBench();
  const newer = securedBench();
  const call = openAs(bench, 'alice');
  call.create('a');
  newer.change(withoutAlice);
  newer.put('a');
  bench.state.replaceWith(newer.state);
  bench.service.revisionAdvanced();
  expect(call.brief()).toEqual(['#0 r1 created', `#0 r2 ${lost}`]);
});

test('progress is told once all watches are checked, and not where none is left', async () => {
  const bench = await slicedBench();
  const [alice, both] = [openAs(bench, 'alice'), openAs(bench, 'alice')];
  for (let n = 0; n < 3; n++) alice.create('a');
  both.create('a');
  both.requester = bench.requester('root');
  both.create('a');
  for (const call of [alice, both]) call.read();
  bench.change(withoutAlice);
  for (const call of [alice, both]) call.request({ case: 'progressRequest', value: {} });
  await settle();
  expect(alice.brief().slice(3).sort()).toEqual([0, 1, 2].map((id) => `#${id} r1 ${lost}`));
  expect(both.brief().slice(2)).toEqual([`#0 r1 ${lost}`, '#-1 r1']);
});

test('a progress request of a client without an identity is not answered, as it has no watch', async () => {
  const bench = securedBench();
  const call = openAs(bench, '');
  call.create('a');
  call.request({ case: 'progressRequest', value: {} });
  call.request({ case: 'cancelRequest', value: { watchId: 0n } });
  expect(await briefly(call)).toHaveLength(1);
});

test('a periodic notification finds by itself that its watch is not permitted any more', async () => {
  const bench = securedBench({ progressNotifyIntervalMs: 100 });
  const call = openAs(bench, 'alice');
  call.create('a', { progressNotify: true });
  const received: string[] = [];
  const untilReceived = async (count: number): Promise<void> => {
    while (received.length < count) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      received.push(...call.brief());
    }
  };
  await untilReceived(2);
  // The service is not told of this change.
  const commands = [{ ...auth(withoutAlice), by: bench.requester('root') }];
  bench.state.apply({ index: bench.state.appliedIndex + 1, epoch: 0, timeMs: 0, commands });
  await untilReceived(3);
  expect(received).toEqual(['#0 r1 created', '#0 r1', `#0 r1 ${lost}`]);
  call.disconnect();
});

test('100,000 idle watches are checked within a second, in short turns, while others are served', async () => {
  const bench = new WatchBench({ limits: { sliceMs: 4 } });
  const users = Array.from({ length: 100 }, (_, n) => `user ${n}`);
  for (const user of users) bench.addUser(user, readAToC);
  bench.enableAuth();
  const calls = users.map((user) => openAs(bench, user, Infinity));
  for (const call of calls) {
    for (let n = 0; n < 1000; n++) call.create(`b${n}`);
  }
  expect(bench.service.counts.watchers).toBe(100_000);
  // Processor time and not wall time, which also depends on other processes.
  const turnsMs: number[] = [];
  let before = process.cpuUsage();
  bench.change({ kind: 'deleteRole', role: 'user 99' }, { kind: 'deleteUser', user: 'user 0' });
  while (bench.service.counts.watchers > 98_000) {
    bench.put('b5');
    await new Promise((resolve) => setImmediate(resolve));
    const { user, system } = process.cpuUsage(before);
    turnsMs.push((user + system) / 1000);
    before = process.cpuUsage();
  }
  expect(turnsMs.reduce((sum, turnMs) => sum + turnMs, 0)).toBeLessThan(1000);
  expect(turnsMs.length).toBeGreaterThan(3);
  turnsMs.sort((one, other) => one - other);
  expect(turnsMs[Math.floor(turnsMs.length / 2)]).toBeLessThan(20);
}, 30_000);

test('a watch that was checked before a further change is checked again', async () => {
  const bench = await slicedBench();
  const [call, ofRoot] = [openAs(bench, 'alice'), openAs(bench, 'root')];
  call.create('a');
  for (let n = 0; n < 5; n++) ofRoot.create('a');
  bench.change({ kind: 'changePassword', user: 'root', passwordHash: 'other' });
  // Alice's watch, the first one, has its turn now.
  await new Promise((resolve) => setImmediate(resolve));
  bench.change(withoutAlice);
  expect(await briefly(call)).toEqual(['#0 r1 created', `#0 r1 ${lost}`]);
  expect(bench.service.counts.watchers).toBe(5);
});

test('frequent changes do not keep the last watches from being checked', async () => {
  const bench = await slicedBench();
  const [first, last] = [openAs(bench, 'root'), openAs(bench, 'alice')];
  for (let n = 0; n < 20; n++) first.create('a');
  last.create('a');
  bench.change(withoutAlice);
  let turns = 0;
  for (; bench.service.counts.watchers > 20 && turns < 100; turns++) {
    bench.change({ kind: 'changePassword', user: 'root', passwordHash: `${turns}` });
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(turns).toBeGreaterThan(10);
  expect(bench.service.counts.watchers).toBe(20);
});
