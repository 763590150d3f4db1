import { describe, expect, test } from 'vitest';
import { StateMachine } from '../state-machine/state-machine.ts';
import { SnapshotReader } from '../snapshot/snapshot-reader.ts';
import { applyNext, deleteRange, grant, put, keysOf, txn } from '../testing/requests.ts';

const refused = (code: string): unknown => ({ kind: 'error', code });

describe('a put', () => {
  test('counts versions from the creation of its key', () => {
    const state = new StateMachine();
    applyNext(state, put('a', '1'), put('a', '2'), deleteRange('a'), put('a', '3'));
    const versions = [2, 3, 4, 5].map((revision) => state.history.eventsAt(revision)[0]!.kv);
    expect(versions.map(({ version, createRevision }) => [version, createRevision])).toEqual([
      [1, 2],
      [2, 2],
      [0, 0],
      [1, 5],
    ]);
  });

  test('returns the previous key if requested and present', () => {
    const state = new StateMachine();
    const first = applyNext(state, put('a', '1', { prevKv: true }), put('a', '2'), put('a', '3', { prevKv: true }));
    expect(first.responses).toMatchObject([{ put: { prevKv: undefined } }, {}, { put: { prevKv: { value: '2' } } }]);
    applyNext(state, deleteRange('a'));
    expect(applyNext(state, put('a', '4', { prevKv: true })).responses).toMatchObject([{ put: { prevKv: undefined } }]);
  });

  test('keeps the value or the lease of its key on request, and refuses that without the key', () => {
    const state = new StateMachine();
    applyNext(state, grant(1n), grant(2n), put('a', 'old', { lease: 1n }));
    applyNext(state, put('a', '', { ignoreValue: true, lease: 2n }), put('a', 'new', { ignoreLease: true }));
    expect(state.history.eventsAt(3)[0]!.kv).toMatchObject({ value: 'old', lease: 2n });
    expect(state.history.eventsAt(4)[0]!.kv).toMatchObject({ value: 'new', lease: 2n });
    expect([keysOf(state, 1n), keysOf(state, 2n)]).toEqual([[], ['a']]);
    const missing = put('x', '', { ignoreValue: true });
    const both = put('x', '', { ignoreValue: true, lease: 99n });
    expect(applyNext(state, missing, both).responses).toEqual([refused('KeyNotFound'), refused('LeaseNotFound')]);
  });
});

describe('the event of a change', () => {
  test('has the pair from before the whole revision, also after a restore', () => {
    const state = new StateMachine();
    applyNext(state, put('a', 'old'));
    // Only a deletion without an end may cover a key that is also put.
    const toTheEnd = deleteRange('a', '\0');
    applyNext(state, txn({ success: [put('a', '1'), put('b', '1'), toTheEnd] }));
    applyNext(state, put('a', 'new'));
    applyNext(state, txn({ success: [toTheEnd, put('a', '2'), toTheEnd] }));
    const reader = new SnapshotReader();
    for (const chunk of state.snapshotForEngine()) reader.push(chunk);
    for (const { history } of [state, reader.finish()]) {
      const told = (revision: number): unknown[] =>
        history.eventsAt(revision).map(({ type, kv, prevKv }) => [type, kv.key, prevKv?.value]);
      expect(told(3)).toEqual([
        ['put', 'a', 'old'],
        ['put', 'b', undefined],
        ['delete', 'a', 'old'],
        ['delete', 'b', undefined],
      ]);
      expect(told(5)).toEqual([
        ['delete', 'a', 'new'],
        ['put', 'a', undefined],
        ['delete', 'a', 'new'],
      ]);
    }
  });
});

describe('compaction', () => {
  test('moves forward only, and not beyond the newest revision', () => {
    const state = new StateMachine();
    applyNext(state, put('a', '1'), put('a', '2'));
    const compact = (revision: number): unknown => applyNext(state, { kind: 'compact', revision }).responses[0];
    expect(compact(4)).toEqual(refused('FutureRevision'));
    expect(compact(-1)).toEqual(refused('Compacted'));
    expect(state.compactRevision).toBe(-1);
    // etcd allows one compaction of an empty history.
    expect(compact(0)).toEqual({ kind: 'compact', revision: 3 });
    expect(compact(0)).toEqual(refused('Compacted'));
    expect(compact(-1)).toEqual(refused('Compacted'));
    expect(compact(3)).toEqual({ kind: 'compact', revision: 3 });
    expect(compact(3)).toEqual(refused('Compacted'));
    expect(compact(2)).toEqual(refused('Compacted'));
  });

  test('keeps the events of the compacted revision, without what they replaced', () => {
    const state = new StateMachine();
    applyNext(state, put('a', '1'), put('a', '2'), deleteRange('a'), { kind: 'compact', revision: 4 });
    const event = { type: 'delete', kv: { key: 'a', modRevision: 4 }, prevKv: undefined };
    expect(state.history.eventsAt(4)).toMatchObject([event]);
    while (state.collectGarbage(1));
    expect(state.history.eventsAt(4)).toMatchObject([event]);
    expect(() => state.history.eventsAt(3)).toThrow(/outside 4\.\.4/);
    expect(() => state.history.eventsAt(5)).toThrow(/outside 4\.\.4/);
  });
});

describe('the hash of the keys', () => {
  test('is that of a revision, unaffected by later writes, and depends on every field', () => {
    const hashOf = (...commands: Parameters<typeof applyNext>[1][]): unknown => {
      const state = new StateMachine();
      applyNext(state, grant(1n), grant(1n << 40n), ...commands);
      return state.hashKv(2);
    };
    const same = hashOf(put('ab', 'cd'), put('x', 'y'));
    expect(hashOf(put('ab', 'cd'))).toEqual(same);
    const others = [
      put('abc', 'd'),
      put('ab', 'ce'),
      put('ab', 'cd', { lease: 1n }),
      put('ab', 'cd', { lease: 1n << 40n }),
      put('ab', 'cd\0'),
    ].map((command) => hashOf(command));
    expect(new Set([same, ...others].map((hash) => JSON.stringify(hash))).size).toBe(6);
  });

  test('is refused for revisions that are compacted or in the future', () => {
    const state = new StateMachine();
    applyNext(state, put('a', '1'), put('a', '2'), put('a', '3'));
    expect(state.hashKv(0)).toMatchObject({ compactRevision: -1, hashRevision: 4 });
    const before = state.hashKv(3);
    applyNext(state, { kind: 'compact', revision: 3 });
    expect(state.hashKv(2)).toEqual(refused('Compacted'));
    expect(state.hashKv(5)).toEqual(refused('FutureRevision'));
    expect(state.hashKv(0)).toMatchObject({ compactRevision: 3, hashRevision: 4 });
    expect(state.hashKv(3)).toEqual(before);
  });

  test('of a compact revision stays the hash from before the compaction, for the last ten compactions', () => {
    const state = new StateMachine();
    const hashes: unknown[] = [];
    for (let revision = 2; revision <= 13; revision++) {
      applyNext(state, put('a', `${revision}`));
      hashes.push(state.hashKv(revision));
      applyNext(state, { kind: 'compact', revision });
    }
    expect(state.hashKv(2)).toEqual(refused('Compacted'));
    expect(state.hashKv(3)).toEqual(refused('Compacted'));
    for (let revision = 4; revision <= 13; revision++) expect(state.hashKv(revision)).toEqual(hashes[revision - 2]);
  });

  test('is the same for every revision', () => {
    const state = new StateMachine();
    const empty = state.hashKv(-1);
    applyNext(state, put('a', '1'));
    expect(state.hashKv(-1)).toEqual(empty);
    expect(state.hashKv(-5)).toEqual({ ...(empty as object), hashRevision: -5 });
  });
});

describe('the sizes', () => {
  test('return to their first values when everything is deleted, compacted and collected', () => {
    const state = new StateMachine();
    applyNext(state, put('k', 'v'));
    applyNext(state, { kind: 'compact', revision: state.currentRevision });
    while (state.collectGarbage(1));
    const before = [state.sizeBytes, state.sizeInUseBytes];
    for (let i = 0; i < 2000; i++) applyNext(state, put(`key-${i % 100}`, 'value'.repeat(10)), grant(BigInt(i + 1)));
    expect(state.sizeBytes).toBeGreaterThan(2000 * (6 + 50 + 64));
    expect(state.sizeInUseBytes).toBeLessThan(state.sizeBytes / 2);
    applyNext(state, deleteRange('key-', 'key.'));
    for (let i = 0; i < 2000; i++) applyNext(state, { kind: 'leaseRevoke', id: BigInt(i + 1) });
    expect(state.sizeInUseBytes).toBe(before[1]);
    applyNext(state, put('k', 'v'), { kind: 'compact', revision: state.currentRevision + 1 });
    while (state.collectGarbage(100));
    expect([state.sizeBytes, state.sizeInUseBytes]).toEqual(before);
    expect(state.keyCount).toBe(1);
  });
});
