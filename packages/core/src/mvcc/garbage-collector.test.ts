import { describe, expect, test } from 'vitest';
import { StateMachine } from '../state-machine/state-machine.ts';
import { applyNext, deleteRange, put, rangeRequest } from '../testing/requests.ts';

describe('the garbage collector', () => {
  test('frees in slices and reports when it is done', () => {
    const state = new StateMachine();
    for (let i = 0; i < 1500; i++) applyNext(state, put('a', `${i}`));
    expect(state.collectGarbage(10)).toBe(false);
    applyNext(state, { kind: 'compact', revision: state.currentRevision });
    const full = state.sizeBytes;
    expect(state.collectGarbage(100)).toBe(true);
    const partly = state.sizeBytes;
    expect(partly).toBeLessThan(full);
    let rounds = 0;
    while (state.collectGarbage(100)) rounds++;
    expect(rounds).toBeGreaterThan(10);
    expect(state.sizeBytes).toBeLessThan(full / 1000);
    expect(state.collectGarbage(100)).toBe(false);
  });

  test('keeps the versions of a snapshot while the snapshot is written, and no longer', () => {
    const state = new StateMachine();
    applyNext(state, put('a', '1'), put('a', '2'));
    const full = state.sizeBytes;
    const first = state.snapshot();
    const second = state.snapshot();
    applyNext(state, { kind: 'compact', revision: 3 });
    expect(state.collectGarbage(1000)).toBe(false);
    for (const chunk of first) expect(chunk).toBeDefined();
    expect(state.collectGarbage(1000)).toBe(false);
    expect(state.sizeBytes).toBe(full);
    // The snapshot is stopped early, and stopped twice.
    second.return();
    second.return();
    state.collectGarbage(1000);
    expect(state.sizeBytes).toBeLessThan(full);
  });

  test('keeps every revision from the oldest held one on when the history was compacted before', () => {
    const state = new StateMachine();
    for (let i = 0; i < 10; i++) applyNext(state, put('a', `${i}`), put('b', `${i}`), deleteRange('b'));
    for (let revision = 2; revision < 14; revision += 2) {
      applyNext(state, { kind: 'compact', revision });
      const expected = [...state.snapshot()];
      const snapshot = state.snapshot();
      const chunks = [snapshot.next().value];
      applyNext(state, put('a', 'later'), { kind: 'compact', revision: revision + 1 });
      while (state.collectGarbage(1));
      expect([...chunks, ...snapshot]).toEqual(expected);
      while (state.collectGarbage(1));
      expect(state.isGarbageCollected).toBe(true);
    }
  });

  test('makes progress with overlapping snapshots: each keeps only the versions that existed when it began', () => {
    const state = new StateMachine();
    let snapshot = state.snapshot();
    for (let round = 0; round < 50; round++) {
      for (let i = 0; i < 20; i++) applyNext(state, put('a', 'x'.repeat(100)));
      applyNext(state, { kind: 'compact', revision: state.currentRevision });
      const next = state.snapshot();
      for (const chunk of snapshot) expect(chunk).toBeDefined();
      snapshot = next;
      while (state.collectGarbage(10));
      expect(state.isGarbageCollected).toBe(true);
      expect(state.sizeBytes).toBe(state.sizeInUseBytes);
    }
    snapshot.return();
  });

  test('keeps the versions of a sliced read and frees older ones, also with overlapping reads', () => {
    const state = new StateMachine();
    applyNext(state, put('a', '1'), put('a', '2'), put('b', '1'), put('c', '1'));
    const request = rangeRequest('a', '\0');
    const expected = state.range(request);
    const scan = state.beginScan(request);
    if ('kind' in scan) throw new Error(scan.code);
    const release = state.pin(scan.revision);
    const later = state.pin(scan.revision);
    expect(scan.step(1)).toBe(false);
    applyNext(state, deleteRange('b'), put('c', '2'), put('d', ''));
    applyNext(state, { kind: 'compact', revision: state.currentRevision });
    const full = state.sizeBytes;
    while (state.collectGarbage(1));
    // No reader needs the first version of a.
    const pinned = state.sizeBytes;
    expect(pinned).toBeLessThan(full);
    while (!scan.step(1));
    expect(scan.result).toEqual(expected);
    release();
    release();
    expect(state.collectGarbage(1)).toBe(false);
    expect(state.sizeBytes).toBe(pinned);
    later();
    while (state.collectGarbage(1));
    expect(state.sizeBytes).toBeLessThan(pinned);
  });

  test('removes a deleted key when its deletion is below the compacted revision', () => {
    const state = new StateMachine();
    applyNext(state, put('a', '1'), deleteRange('a'), { kind: 'compact', revision: 3 });
    while (state.collectGarbage(1));
    const withTombstone = state.sizeBytes;
    expect(withTombstone).toBeGreaterThan(0);
    applyNext(state, put('b', ''), deleteRange('b'), put('c', ''), { kind: 'compact', revision: 6 });
    while (state.collectGarbage(1));
    expect(state.sizeBytes).toBe(state.sizeInUseBytes);
  });

  test('does not count the deletions at the compacted revision against the quota until the next compaction', () => {
    const keys = 100;
    const state = new StateMachine();
    for (let key = 0; key < keys; key++) applyNext(state, put(`${key}`, ''));
    applyNext(state, deleteRange('\0', '\0'));
    const deletion = state.currentRevision;
    applyNext(state, put('0', ''), { kind: 'compact', revision: deletion });
    expect(state.sizeForQuotaBytes).toBe(state.sizeBytes);
    // The size shrinks step by step as versions are collected, and never grows.
    let least = state.sizeForQuotaBytes;
    const collectGarbage = (): void => {
      for (let more = true; more;) {
        more = state.collectGarbage(1);
        expect(state.sizeForQuotaBytes).toBeLessThanOrEqual(least);
        least = state.sizeForQuotaBytes;
      }
    };
    collectGarbage();
    expect(state.sizeForQuotaBytes).toBe(state.sizeInUseBytes);
    expect(state.sizeBytes).toBeGreaterThan(keys * 192);
    expect(state.history.eventsAt(deletion).length).toBe(keys);
    applyNext(state, { kind: 'compact', revision: state.currentRevision });
    collectGarbage();
    expect([state.sizeForQuotaBytes, state.sizeBytes]).toEqual([state.sizeInUseBytes, state.sizeInUseBytes]);
  });
});
