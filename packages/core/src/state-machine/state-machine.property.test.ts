import fc from 'fast-check';
import { describe, expect, inject, test } from 'vitest';
import type { RangeRequest } from '../mvcc/kv-types.ts';
import { SnapshotReader } from '../snapshot/snapshot-reader.ts';
import { entryOf, history, rangeOptions } from '../testing/histories.ts';
import type { Step } from '../testing/histories.ts';
import { NaiveModel } from '../testing/naive-model.ts';
import { keysOf } from '../testing/requests.ts';
import type { Command, CommandResponse } from './command.ts';
import type { Entry } from './entry.ts';
import { StateMachine } from './state-machine.ts';

const histories = { commit: 40, ci: 200, soak: 10_000 }[inject('effort')];

/** Runs a history on the model and the machine, and compares each response. */
function run(steps: readonly Step[]): { model: NaiveModel; machine: StateMachine; entries: Entry[] } {
  const model = new NaiveModel();
  const machine = new StateMachine();
  const entries: Entry[] = [];
  for (const step of steps) {
    machine.collectGarbage(step.collectSteps);
    const entry = entryOf(step, model);
    entries.push(entry);
    const expected = model.apply(entry);
    expect(machine.apply(entry)).toEqual(expected);
    expectSymmetry(machine, model);
  }
  return { model, machine, entries };
}

/** L5: a key has a lease exactly if the lease has the key. */
function expectSymmetry(machine: StateMachine, model: NaiveModel): void {
  const leases = [...machine.leases()];
  expect(leases).toEqual([...model.leases.values()].sort((a, b) => (a.id < b.id ? -1 : 1)));
  for (const lease of leases) {
    expect(keysOf(machine, lease.id)).toEqual(model.keysOfLease(lease.id));
    expect(machine.deadlineOf(lease)).toBe(model.deadlineOf(lease));
  }
  for (const kv of model.leasedKeys()) expect(machine.lease(kv.lease)).toBeDefined();
}

function expectSame(machine: StateMachine, model: NaiveModel, ranges: readonly RangeRequest[]): void {
  expect(machine.currentRevision).toBe(model.currentRevision);
  expect(machine.compactRevision).toBe(model.compactRevision);
  expect(machine.clusterTimeMs).toBe(model.clusterTimeMs);
  expect(machine.epoch).toBe(model.epoch);
  for (let revision = 0; revision <= model.currentRevision + 1; revision++) {
    for (const range of ranges) {
      const request = { ...range, revision };
      expect(machine.range(request)).toEqual(model.range(request));
    }
  }
  for (let revision = Math.max(model.compactRevision, 1); revision <= model.currentRevision; revision++) {
    expect(machine.history.eventsAt(revision)).toEqual(model.eventsAt(revision));
  }
}

function hashes(machine: StateMachine): unknown[] {
  const all: unknown[] = [machine.stateHash(), machine.hashKv(0)];
  // Remembered hashes from before a compaction are local to a server, and not part of the state.
  const first = Math.max(machine.compactRevision, 0) + 1;
  for (let revision = first; revision <= machine.currentRevision + 1; revision++) all.push(machine.hashKv(revision));
  return all;
}

function restored(chunks: readonly Uint8Array[]): StateMachine {
  const reader = new SnapshotReader();
  for (const chunk of chunks) reader.push(chunk);
  return reader.finish();
}

/** The part of a response that is the same on all servers: the rest is for the waiting client. */
function withoutResults(response: CommandResponse): unknown {
  switch (response.kind) {
    case 'txn':
      return { ...response, txn: response.txn.succeeded };
    case 'deleteRange':
      return { ...response, deleteRange: response.deleteRange.deleted };
    default:
      return response;
  }
}

const ranges = fc.array(rangeOptions, { minLength: 3, maxLength: 6 });

describe('the state machine', { timeout: 1_800_000 }, () => {
  test('responds to every command, range and event like a model with a full copy per revision', () => {
    fc.assert(
      fc.property(history, ranges, (steps, requests) => {
        const { model, machine } = run(steps);
        expectSame(machine, model, requests);
        while (machine.collectGarbage(7));
        expectSame(machine, model, requests);
      }),
      { numRuns: 1.5 * histories },
    );
  });

  test('has the same hashes after the same entries, regardless of garbage collection', () => {
    fc.assert(
      fc.property(history, (steps) => {
        const { machine, entries } = run(steps);
        const uncollected = new StateMachine();
        for (const entry of entries) uncollected.apply(entry);
        expect(hashes(uncollected)).toEqual(hashes(machine));
        while (uncollected.collectGarbage(1));
        expect(hashes(uncollected)).toEqual(hashes(machine));
      }),
      { numRuns: histories },
    );
  });

  test('is the same when no client waits for the responses, with transaction limits and without', () => {
    const limits = fc.record({
      maxRows: fc.integer({ min: 1, max: 12 }),
      maxReplyBytes: fc.integer({ min: 1, max: 20 }),
      maxComparedBytes: fc.integer({ min: 1, max: 30 }),
    });
    fc.assert(
      fc.property(history, fc.option(limits), fc.nat(40), (steps, limited, at) => {
        const { entries } = run(steps);
        const [awaited, replayed] = [new StateMachine(), new StateMachine()];
        let copy: StateMachine | undefined;
        for (const { index, ...entry } of entries) {
          const commands: Command[] = [...entry.commands];
          if (limited !== null && index === 1) commands.push({ kind: 'setTxnLimits', limits: limited });
          const answers = awaited.apply({ index, ...entry, commands });
          const outcomes = replayed.apply({ index, ...entry, commands }, () => false);
          expect(outcomes.responses.map(withoutResults)).toEqual(answers.responses.map(withoutResults));
          if (index === at) copy = restored([...awaited.snapshot()]);
          else if (copy !== undefined) copy.apply({ index, ...entry, commands }, () => index % 2 === 0);
        }
        expect(hashes(replayed)).toEqual(hashes(awaited));
        if (copy !== undefined) expect(hashes(copy)).toEqual(hashes(awaited));
      }),
      { numRuns: histories },
    );
  });

  test('reads a range in slices as in one call, regardless of writes and collection in between', () => {
    fc.assert(
      fc.property(history, history, ranges, fc.integer({ min: 1, max: 3 }), (before, during, requests, rows) => {
        const { model, machine } = run(before);
        for (const request of requests) {
          const expected = machine.range(request);
          const scan = machine.beginScan(request);
          if ('kind' in scan) {
            expect(scan).toEqual(expected);
            continue;
          }
          const release = machine.pin(scan.revision);
          for (let at = 0; !scan.step(rows); at++) {
            const step = during[at];
            if (step === undefined) continue;
            const entry = entryOf(step, model);
            model.apply(entry);
            machine.apply(entry);
            machine.collectGarbage(step.collectSteps);
          }
          release();
          expect(scan.result).toEqual(expected);
        }
        while (machine.collectGarbage(7));
        expectSame(machine, model, requests);
      }),
      { numRuns: histories },
    );
  });

  test('is the same after a snapshot written during apply, and the entries after it', () => {
    fc.assert(
      fc.property(history, history, ranges, (before, during, requests) => {
        const { model, machine } = run(before);
        const writer = machine.snapshotForEngine();
        const chunks: Uint8Array[] = [];
        const tail: Entry[] = [];
        for (const step of during) {
          for (let i = 0; i < step.chunks; i++) {
            const next = writer.next();
            if (next.done !== true) chunks.push(next.value);
          }
          machine.collectGarbage(step.collectSteps);
          const entry = entryOf(step, model);
          tail.push(entry);
          model.apply(entry);
          machine.apply(entry);
        }
        chunks.push(...writer);
        const copy = restored(chunks);
        expect(copy.appliedIndex).toBe(writer.appliedIndex);
        for (const entry of tail) copy.apply(entry);
        expectSymmetry(copy, model);
        expectSame(copy, model, requests);
        expect(hashes(copy)).toEqual(hashes(machine));
        while (copy.collectGarbage(5));
        while (machine.collectGarbage(5));
        expectSame(copy, model, requests);
        expect(copy.sizeBytes).toBe(machine.sizeBytes);
        expect(copy.sizeInUseBytes).toBe(machine.sizeInUseBytes);
        expect(copy.sizeForQuotaBytes).toBe(machine.sizeForQuotaBytes);
        // After a compaction of everything the size is the size of the newest versions.
        if (copy.compactRevision === copy.currentRevision) expect(copy.sizeForQuotaBytes).toBe(copy.sizeInUseBytes);
        expect(copy.sizeForQuotaBytes).toBeGreaterThanOrEqual(copy.sizeInUseBytes);
      }),
      { numRuns: histories },
    );
  });
});
