import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LeaseCollection } from '../lease/lease-collection.ts';
import { KeyValueStore } from '../mvcc/key-value-store.ts';
import { emptyCluster } from '../state-machine/cluster-state.ts';
import { StateMachine } from '../state-machine/state-machine.ts';
import { applyNext, deleteRange, grant, put, putRequest, rangeRequest, keysOf } from '../testing/requests.ts';
import { SnapshotError } from './snapshot-error.ts';
import { maxChunkBytes } from './snapshot-format.ts';
import { SnapshotReader } from './snapshot-reader.ts';
import { SnapshotWriter } from './snapshot-writer.ts';

/** An example of every kind of record. */
function sample(): StateMachine {
  const state = new StateMachine();
  applyNext(state, { kind: 'createCluster', clusterId: 5n, secret: 's' });
  applyNext(state, { kind: 'claim', epoch: 1, leader: 'é✓', leaderLeaseMs: 800 });
  applyNext(state, { kind: 'registerMember', id: 1n, name: 'm', clientUrls: ['http://a', 'http://b'] });
  applyNext(
    state,
    grant(1n, 1.5, 'job ✓'),
    grant(-1n),
    put('a', '1', { lease: 1n }),
    put('\xff', '\0\xff'),
    put('b', '2'),
  );
  applyNext(state, { kind: 'compact', revision: 3 });
  applyNext(state, { kind: 'checkpointLeases', leases: [{ id: -1n, renewIndex: 4, deadlineMs: 12.25 }] });
  applyNext(state, { kind: 'claim', epoch: 2, leader: 'next', leaderLeaseMs: 700 });
  applyNext(state, deleteRange('b'), { kind: 'alarm', action: 'activate', memberId: 1n, alarm: 'corrupt' });
  return state;
}

function bytesOf(state: StateMachine): Uint8Array {
  return join([...state.snapshotForEngine()]);
}

function join(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function restore(bytes: Uint8Array): StateMachine {
  const reader = new SnapshotReader();
  reader.push(bytes);
  return reader.finish();
}

function refusal(bytes: Uint8Array): SnapshotError | undefined {
  try {
    restore(bytes);
    return undefined;
  } catch (error) {
    if (error instanceof SnapshotError) return error;
    throw error;
  }
}

describe('a restored state', () => {
  test('equals the old one', () => {
    const state = sample();
    const copy = restore(bytesOf(state));
    for (const one of [state, copy]) {
      expect(one.clusterId).toBe(5n);
      expect([one.epoch, one.leader, one.leaderLeaseMs, one.clusterTimeMs]).toEqual([2, 'next', 700, 80]);
      expect(one.members).toEqual([{ id: 1n, name: 'm', clientUrls: ['http://a', 'http://b'] }]);
      expect(one.alarms).toEqual([{ memberId: 1n, alarm: 'corrupt' }]);
      expect([...one.leases()].map((lease) => one.deadlineOf(lease))).toEqual([12.25, 71.5]);
      expect([one.appliedIndex, one.currentRevision, one.compactRevision]).toEqual([8, 5, 3]);
      expect(keysOf(one, 1n)).toEqual(['a']);
    }
    expect(copy.stateHash()).toBe(state.stateHash());
    expect(bytesOf(copy)).toEqual(bytesOf(state));
  });

  test('continues where the old one stopped, also when empty', () => {
    const copy = restore(bytesOf(new StateMachine()));
    applyNext(copy, put('a', '1'));
    expect([copy.currentRevision, copy.compactRevision]).toEqual([2, -1]);
  });

  test('does not depend on the chunk boundaries', () => {
    const bytes = bytesOf(sample());
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: bytes.length })), (cuts) => {
        const reader = new SnapshotReader();
        const ends = [...cuts.sort((a, b) => a - b), bytes.length];
        ends.forEach((end, i) => reader.push(bytes.subarray(ends[i - 1] ?? 0, end)));
        expect(reader.finish().stateHash()).toBe(sample().stateHash());
      }),
    );
  });

  test('may have many blocks, and values longer than a block', () => {
    const state = new StateMachine();
    const large = 'x'.repeat(300_000);
    for (let i = 0; i < 500; i++)
      applyNext(state, put(`key ${i}`, 'v'.repeat(1000)), grant(BigInt(i + 1), 1000, 'l'.repeat(200)));
    applyNext(state, put('large', large), { kind: 'compact', revision: 250 });
    const chunks = [...state.snapshotForEngine()];
    expect(chunks.length).toBeGreaterThan(15);
    expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThanOrEqual(maxChunkBytes);
    const copy = restore(bytesOf(state));
    expect(copy.stateHash()).toBe(state.stateHash());
    expect(copy.range(rangeRequest('large'))).toMatchObject({ kvs: [{ value: large }] });
    expect(copy.leaseCount).toBe(500);
  });
});

describe('a snapshot in steps', () => {
  test('is unaffected when keys deleted before it are removed between the steps', () => {
    const state = new StateMachine();
    const names = Array.from({ length: 5_000 }, (_, i) => `key ${i}`);
    for (const name of names) applyNext(state, put(name, 'v'));
    for (const [i, name] of names.entries()) if (i % 5 !== 0) applyNext(state, deleteRange(name));
    applyNext(state, put('last', ''), { kind: 'compact', revision: state.currentRevision + 1 });
    const expected = bytesOf(state);
    const chunks: Uint8Array[] = [];
    for (const chunk of state.snapshotForEngine()) {
      chunks.push(chunk);
      state.collectGarbage(2_000);
    }
    expect(state.isGarbageCollected).toBe(true);
    expect(state.sizeBytes).toBe(state.sizeInUseBytes);
    expect(join(chunks)).toEqual(expected);
  });
});

describe('a damaged snapshot', () => {
  test('is refused when any byte is changed', () => {
    const bytes = bytesOf(sample());
    for (let at = 0; at < bytes.length; at++) {
      for (const flip of [1, 128]) {
        const damaged = bytes.slice();
        damaged[at]! ^= flip;
        const error = refusal(damaged);
        expect(error, `byte ${at}`).toBeInstanceOf(SnapshotError);
        // The four bytes of the version name another version, which is no damage.
        expect(error?.code).toBe(at >= 8 && at < 12 ? 'unsupported' : 'damaged');
      }
    }
  });

  test('is refused when it is truncated anywhere, or has extra bytes', () => {
    const bytes = bytesOf(sample());
    for (let length = 0; length < bytes.length; length++) {
      expect(refusal(bytes.slice(0, length))?.message, `${length} bytes`).toMatch(/truncated: it ends at byte \d+$/);
    }
    const longer = new Uint8Array(bytes.length + 1);
    longer.set(bytes);
    expect(refusal(longer)?.code).toBe('damaged');
  });

  test('is refused when blocks of it are missing, doubled or from another snapshot', () => {
    const state = new StateMachine();
    for (let i = 0; i < 300; i++) applyNext(state, put(`key ${i}`, 'v'.repeat(1000)));
    const chunks = [...state.snapshotForEngine()].filter((chunk) => chunk.length > 0);
    applyNext(state, put('one', 'more'));
    const others = [...state.snapshotForEngine()].filter((chunk) => chunk.length > 0);
    expect(chunks.length).toBeGreaterThan(6);
    expect(refusal(join(chunks))).toBeUndefined();
    for (let i = 1; i < chunks.length; i++) {
      expect(refusal(join(chunks.toSpliced(i, 1)))?.code).toBe('damaged');
      expect(refusal(join(chunks.toSpliced(i, 0, chunks[i]!)))?.code).toBe('damaged');
      expect(refusal(join(chunks.with(i, others[i]!)))?.code).toBe('damaged');
    }
  });

  test('is refused when a key in it has a lease that does not exist', () => {
    // Links without attachments simulate a bug that loses a lease.
    const links = { has: () => true, attach: () => undefined, detach: () => undefined };
    const store = new KeyValueStore(links);
    store.put(putRequest('a', '1', { lease: 5n }));
    store.commit();
    const writer = new SnapshotWriter(
      { cluster: emptyCluster(), leases: new LeaseCollection(), store },
      { withSecret: true },
    );
    expect(refusal(join([...writer]))?.message).toMatch(/a key in it has a lease that does not exist/);
  });

  test('reports the offset, and a remedy for a newer format', () => {
    const bytes = bytesOf(sample());
    bytes[40]! ^= 1;
    expect(refusal(bytes)?.message).toMatch(/damaged at byte \d+ or before: a checksum does not match/);
    const future = bytesOf(sample());
    future[8] = 9;
    expect(refusal(future)?.message).toMatch(
      /format 9, but this version of Tenure reads formats up to 4; start a newer one/,
    );
  });
});
