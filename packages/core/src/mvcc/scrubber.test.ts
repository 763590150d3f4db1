import { describe, expect, test } from 'vitest';
import { StateMachine } from '../state-machine/state-machine.ts';
import { applyNext, deleteRange, put, rangeRequest } from '../testing/requests.ts';

describe('scrubbing', () => {
  test('frees little by little, and says when it is done', () => {
    const state = new StateMachine();
    for (let i = 0; i < 1500; i++) applyNext(state, put('a', `${i}`));
    expect(state.scrub(10)).toBe(false);
    applyNext(state, { kind: 'compact', revision: state.currentRevision });
    const full = state.sizeBytes;
    expect(state.scrub(100)).toBe(true);
    const partly = state.sizeBytes;
    expect(partly).toBeLessThan(full);
    let rounds = 0;
    while (state.scrub(100)) rounds++;
    expect(rounds).toBeGreaterThan(10);
    expect(state.sizeBytes).toBeLessThan(full / 1000);
    expect(state.scrub(100)).toBe(false);
  });

  test('leaves what a snapshot needs while that is written, and only that long', () => {
    const state = new StateMachine();
    applyNext(state, put('a', '1'), put('a', '2'));
    const full = state.sizeBytes;
    const first = state.snapshot();
    const second = state.snapshot();
    applyNext(state, { kind: 'compact', revision: 3 });
    expect(state.scrub(1000)).toBe(false);
    for (const chunk of first) expect(chunk).toBeDefined();
    expect(state.scrub(1000)).toBe(false);
    expect(state.sizeBytes).toBe(full);
    // Stopped early, and told so twice.
    second.return();
    second.return();
    state.scrub(1000);
    expect(state.sizeBytes).toBeLessThan(full);
  });

  test('leaves each revision from the oldest held one on, of a history that was compacted before', () => {
    const state = new StateMachine();
    for (let i = 0; i < 10; i++) applyNext(state, put('a', `${i}`), put('b', `${i}`), deleteRange('b'));
    for (let revision = 2; revision < 14; revision += 2) {
      applyNext(state, { kind: 'compact', revision });
      const expected = [...state.snapshot()];
      const snapshot = state.snapshot();
      const chunks = [snapshot.next().value];
      applyNext(state, put('a', 'later'), { kind: 'compact', revision: revision + 1 });
      while (state.scrub(1));
      expect([...chunks, ...snapshot]).toEqual(expected);
      while (state.scrub(1));
      expect(state.isScrubbed).toBe(true);
    }
  });

  test('goes on however snapshots overlap: each keeps only what was there when it began', () => {
    const state = new StateMachine();
    let snapshot = state.snapshot();
    for (let round = 0; round < 50; round++) {
      for (let i = 0; i < 20; i++) applyNext(state, put('a', 'x'.repeat(100)));
      applyNext(state, { kind: 'compact', revision: state.currentRevision });
      const next = state.snapshot();
      for (const chunk of snapshot) expect(chunk).toBeDefined();
      snapshot = next;
      while (state.scrub(10));
      expect(state.isScrubbed).toBe(true);
      expect(state.sizeBytes).toBe(state.sizeInUseBytes);
    }
    snapshot.return();
  });

  test('leaves what a read in slices needs, and takes what lies below, however such reads overlap', () => {
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
    while (state.scrub(1));
    // The first version of a was needed by nobody.
    const pinned = state.sizeBytes;
    expect(pinned).toBeLessThan(full);
    while (!scan.step(1));
    expect(scan.result).toEqual(expected);
    release();
    release();
    expect(state.scrub(1)).toBe(false);
    expect(state.sizeBytes).toBe(pinned);
    later();
    while (state.scrub(1));
    expect(state.sizeBytes).toBeLessThan(pinned);
  });

  test('lets a deleted key go when its deletion is below the compacted revision', () => {
    const state = new StateMachine();
    applyNext(state, put('a', '1'), deleteRange('a'), { kind: 'compact', revision: 3 });
    while (state.scrub(1));
    const withTombstone = state.sizeBytes;
    expect(withTombstone).toBeGreaterThan(0);
    applyNext(state, put('b', ''), deleteRange('b'), put('c', ''), { kind: 'compact', revision: 6 });
    while (state.scrub(1));
    expect(state.sizeBytes).toBe(state.sizeInUseBytes);
  });

  test('leaves the deletions at the compacted revision out of what a quota counts, until the next compaction', () => {
    const keys = 100;
    const state = new StateMachine();
    for (let key = 0; key < keys; key++) applyNext(state, put(`${key}`, ''));
    applyNext(state, deleteRange('\0', '\0'));
    const deletion = state.currentRevision;
    applyNext(state, put('0', ''), { kind: 'compact', revision: deletion });
    expect(state.sizeForQuotaBytes).toBe(state.sizeBytes);
    // Little by little, as it is scrubbed, and it never grows meanwhile.
    let least = state.sizeForQuotaBytes;
    const scrub = (): void => {
      for (let more = true; more;) {
        more = state.scrub(1);
        expect(state.sizeForQuotaBytes).toBeLessThanOrEqual(least);
        least = state.sizeForQuotaBytes;
      }
    };
    scrub();
    expect(state.sizeForQuotaBytes).toBe(state.sizeInUseBytes);
    expect(state.sizeBytes).toBeGreaterThan(keys * 192);
    expect(state.history.eventsAt(deletion).length).toBe(keys);
    applyNext(state, { kind: 'compact', revision: state.currentRevision });
    scrub();
    expect([state.sizeForQuotaBytes, state.sizeBytes]).toEqual([state.sizeInUseBytes, state.sizeInUseBytes]);
  });
});
