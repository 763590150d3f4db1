import { describe, expect, test } from 'vitest';
import { SnapshotReader } from '../snapshot/snapshot-reader.ts';
import { applyNext, deleteRange, grant, put, rangeRequest, txn } from '../testing/requests.ts';
import { WatchHub } from '../watch/watch-hub.ts';
import type { Command } from './command.ts';
import { StateMachine } from './state-machine.ts';

const stale = { kind: 'error', code: 'StaleEpoch' };

function claim(epoch: number, leader = 'one'): Command {
  return { kind: 'claim', epoch, leader, leaderLeaseMs: 800 };
}

/** A new cluster with a leader, at index 2. */
function led(): StateMachine {
  const state = new StateMachine();
  applyNext(state, { kind: 'createCluster', clusterId: 77n, secret: 's' });
  applyNext(state, claim(1));
  return state;
}

describe('entries', () => {
  test('are applied once each, in order', () => {
    const state = led();
    const entry = { index: 3, epoch: 1, timeMs: 0, commands: [] };
    state.apply(entry);
    expect(() => state.apply(entry)).toThrow(/entry 3 was passed to apply after entry 3/);
    expect(() => state.apply({ ...entry, index: 5 })).toThrow(/entry 5 was passed to apply after entry 3/);
    expect(state.appliedIndex).toBe(3);
  });

  test('with a command of an unknown kind stop the server before anything of them is applied', () => {
    const state = led();
    const unknown = { kind: 'teleport' } as unknown as Command;
    expect(() => applyNext(state, put('a', '1'), unknown)).toThrow(/unknown kind "teleport".*newer version/);
    expect([state.appliedIndex, state.currentRevision]).toEqual([2, 1]);
    expect(() => applyNext(state, { kind: 'toString' } as unknown as Command)).toThrow(/unknown kind/);
  });

  test('carry the time, which never goes back', () => {
    const state = led();
    state.apply({ index: 3, epoch: 1, timeMs: 500, commands: [{ kind: 'heartbeat' }] });
    state.apply({ index: 4, epoch: 1, timeMs: 400, commands: [{ kind: 'heartbeat' }] });
    expect(state.clusterTimeMs).toBe(500);
  });
});

describe('epochs', () => {
  test('begin with a claim of the next epoch, as the first command of its entry', () => {
    const state = led();
    expect([state.epoch, state.leader, state.leaderLeaseMs]).toEqual([1, 'one', 800]);
    expect(applyNext(state, claim(3), put('a', '')).responses).toEqual([stale, stale]);
    expect(applyNext(state, claim(1), put('a', '')).responses).toEqual([stale, stale]);
    expect(applyNext(state, { kind: 'heartbeat' }, claim(2)).responses[1]).toEqual(stale);
    expect(state.epoch).toBe(1);
    expect(applyNext(state, claim(2, 'two'), put('a', ''), claim(3)).responses).toEqual([
      { kind: 'ok', revision: 1 },
      { kind: 'put', revision: 2, put: { prevKv: undefined } },
      stale,
    ]);
    expect([state.epoch, state.leader]).toEqual([2, 'two']);
  });

  test('fence writes of a past epoch, time included', () => {
    const state = led();
    applyNext(state, grant(5n));
    applyNext(state, claim(2));
    const timeMs = state.clusterTimeMs;
    const all: Command[] = [
      put('a', ''),
      deleteRange('a'),
      txn({ success: [put('a', '')] }),
      { kind: 'compact', revision: 1 },
      grant(6n),
      { kind: 'leaseRevoke', id: 5n },
      { kind: 'expireLeases', leases: [{ id: 5n, renewIndex: 3 }] },
      { kind: 'checkpointLeases', leases: [{ id: 5n, renewIndex: 3, deadlineMs: 1 }] },
      { kind: 'renewLeases', ids: [5n] },
      { kind: 'heartbeat' },
      { kind: 'registerMember', id: 1n, name: '', clientUrls: [] },
      { kind: 'alarm', action: 'activate', memberId: 1n, alarm: 'corrupt' },
    ];
    const hash = state.stateHash();
    const applied = state.apply({ index: 5, epoch: 1, timeMs: timeMs + 1000, commands: all });
    expect(applied.responses).toEqual(all.map(() => stale));
    expect(applied.leaseChanges).toEqual([]);
    expect(applied.lastRevision).toBe(applied.firstRevision - 1);
    expect(state.clusterTimeMs).toBe(timeMs);
    // Only the applied index differs: a machine that saw an empty entry instead has the same hash.
    expect(state.stateHash()).not.toBe(hash);
    const other = led();
    applyNext(other, grant(5n));
    applyNext(other, claim(2));
    other.apply({ index: 5, epoch: 1, timeMs: 0, commands: [] });
    expect(state.stateHash()).toBe(other.stateHash());
  });

  test('do not begin before the log is created', () => {
    const state = led();
    expect(state.clusterId).toBe(77n);
    expect(applyNext(state, { kind: 'createCluster', clusterId: 78n, secret: 's' }).responses).toEqual([stale]);
    expect(state.clusterId).toBe(77n);
    const empty = new StateMachine();
    const responses = applyNext(
      empty,
      { kind: 'heartbeat' },
      { kind: 'createCluster', clusterId: 1n, secret: 's' },
    ).responses;
    expect(responses[1]).toEqual(stale);
  });
});

describe('alarms', () => {
  const nospace: Command = { kind: 'alarm', action: 'activate', memberId: 9n, alarm: 'nospace' };

  test('of space refuse commands that take space and no others', () => {
    const state = led();
    applyNext(state, grant(1n), put('a', '1', { lease: 1n }), put('b', '1'), nospace, nospace);
    expect(state.alarms).toEqual([{ memberId: 9n, alarm: 'nospace' }]);
    const full = { kind: 'error', code: 'NoSpace' };
    const refused = [put('c', ''), grant(2n), txn({ success: [txn({ success: [put('c', '')] })] })];
    expect(applyNext(state, ...refused).responses).toEqual([full, full, full]);
    const allowed = [
      txn({ success: [deleteRange('b')], failure: [put('c', '')] }),
      deleteRange('x'),
      { kind: 'leaseRevoke', id: 1n } as const,
      { kind: 'compact', revision: 2 } as const,
      { kind: 'alarm', action: 'deactivate', memberId: 9n, alarm: 'nospace' } as const,
    ];
    const kinds = applyNext(state, ...allowed).responses.map((response) => response.kind);
    expect(kinds).toEqual(['txn', 'deleteRange', 'leaseRevoke', 'compact', 'ok']);
    expect(state.keyCount).toBe(0);
    expect(applyNext(state, put('c', '')).responses[0]?.kind).toBe('put');
  });

  test('of corruption refuse every client request', () => {
    const state = led();
    applyNext(state, put('a', '1'), grant(1n), { kind: 'alarm', action: 'activate', memberId: 9n, alarm: 'corrupt' });
    const corrupt = { kind: 'error', code: 'Corrupt' };
    const requests: Command[] = [
      put('a', ''),
      deleteRange('a'),
      txn({}),
      { kind: 'compact', revision: 2 },
      grant(2n),
      { kind: 'leaseRevoke', id: 1n },
    ];
    expect(applyNext(state, ...requests).responses).toEqual(requests.map(() => corrupt));
    expect(state.range(rangeRequest('a'))).toEqual(corrupt);
    expect(state.readTxn({ compare: [], success: [], failure: [] })).toEqual(corrupt);
    expect(applyNext(state, { kind: 'renewLeases', ids: [1n] }).responses).toMatchObject([{ renewed: [1n] }]);
  });
});

describe('members', () => {
  test('are sorted by id, and the last registration of an id replaces the earlier ones', () => {
    const state = led();
    const register = (id: bigint, name: string): Command => ({ kind: 'registerMember', id, name, clientUrls: [name] });
    applyNext(state, register(3n, 'c'), register(2n ** 63n, 'big'), register(1n, 'a'), register(3n, 'd'));
    expect(state.members.map(({ id, name }) => [id, name])).toEqual([
      [1n, 'a'],
      [3n, 'd'],
      [2n ** 63n, 'big'],
    ]);
  });

  test('have unique names: a name belongs to the first id registered with it', () => {
    const state = led();
    const register = (id: bigint, name: string): Command => ({ kind: 'registerMember', id, name, clientUrls: [] });
    const taken = { kind: 'error', code: 'MemberExists' };
    expect(applyNext(state, register(1n, 'a'), register(2n, 'a')).responses[1]).toEqual(taken);
    expect(state.members).toEqual([{ id: 1n, name: 'a', clientUrls: [] }]);
    applyNext(state, register(2n, 'b'));
    expect(applyNext(state, register(2n, 'a'), register(1n, 'a')).responses).toMatchObject([taken, { kind: 'ok' }]);
    // The name of a removed member is available to others.
    applyNext(state, { kind: 'removeMember', id: 1n }, register(3n, 'a'));
    expect(state.members.map(({ id, name }) => [id, name])).toEqual([
      [2n, 'b'],
      [3n, 'a'],
    ]);
  });
});

describe('a state that is replaced by a newer one', () => {
  /** As a snapshot does. */
  const copyOf = (state: StateMachine): StateMachine => {
    const reader = new SnapshotReader();
    for (const chunk of state.snapshotForEngine()) reader.push(chunk);
    return reader.finish();
  };

  test('is the newer one for every holder of the state, and its history continues', () => {
    const [behind, ahead] = [led(), led()];
    const { history } = behind;
    for (const state of [behind, ahead]) applyNext(state, put('a', '1'), put('b', '1'));
    applyNext(ahead, put('a', '2'), deleteRange('b'), grant(7n));
    behind.replaceWith(copyOf(ahead));
    expect(behind.stateHash()).toBe(ahead.stateHash());
    expect(behind.history).toBe(history);
    expect(history.currentRevision).toBe(5);
    expect(history.eventsAt(4)).toMatchObject([{ type: 'put', kv: { key: 'a', value: '2' } }]);
    expect(behind.lease(7n)).toBeDefined();
    applyNext(behind, put('c', '1'));
    expect(behind.currentRevision).toBe(6);
  });

  test('lets a watch continue in the history, and ends a watch that needs compacted revisions', () => {
    const [behind, ahead] = [led(), led()];
    const hubs = [behind, behind].map(({ history }) => new WatchHub<string>(history));
    const spec = { range: { start: 'a', end: undefined, single: false }, startRevision: 0, noPut: false };
    const budget = { maxEvents: 100, maxBytes: 1_000_000 };
    const [goesOn, ends] = hubs.map((hub) => hub.watch('w', { ...spec, noDelete: false, prevKv: false }));
    applyNext(ahead, put('a', '1'), put('a', '2'));
    behind.replaceWith(copyOf(ahead));
    const [batch] = hubs[0]!.advance(budget).batches;
    expect(batch?.watcher).toBe(goesOn);
    expect(batch?.events.map(({ kv }) => kv.value)).toEqual(['1', '2']);
    applyNext(ahead, put('a', '3'), put('a', '4'), { kind: 'compact', revision: 4 });
    behind.replaceWith(copyOf(ahead));
    expect(hubs[1]!.advance(budget).overtaken).toEqual([ends]);
    expect(hubs[1]!.pull(ends!, budget)).toEqual({ kind: 'compacted', compactRevision: 4 });
  });

  test('refuses a state that is not a later one of its own log, and changes nothing', () => {
    const [state, other, older] = [led(), led(), led()];
    for (const each of [state, older]) applyNext(each, put('a', 'served'));
    applyNext(state, put('b', '1'));
    applyNext(other, put('a', 'something else'));
    for (const value of ['1', '2']) applyNext(other, put('b', value));
    const before = state.stateHash();
    expect(() => state.replaceWith(copyOf(older))).toThrow('does not follow on');
    expect(() => state.replaceWith(copyOf(other))).toThrow('the log has lost entries');
    expect(state.stateHash()).toBe(before);
  });
});
