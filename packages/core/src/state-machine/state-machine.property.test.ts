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

/** Runs a history on the model and the machine, and compares the answers as they come. */
function run(steps: readonly Step[]): { model: NaiveModel; machine: StateMachine; entries: Entry[] } {
  const model = new NaiveModel();
  const machine = new StateMachine();
  const entries: Entry[] = [];
  for (const step of steps) {
    machine.scrub(step.scrubSteps);
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
  // What a server remembers of the time before a compaction is its own, and not of the state.
  const first = Math.max(machine.compactRevision, 0) + 1;
  for (let revision = first; revision <= machine.currentRevision + 1; revision++) all.push(machine.hashKv(revision));
  return all;
}

function restored(chunks: readonly Uint8Array[]): StateMachine {
  const reader = new SnapshotReader();
  for (const chunk of chunks) reader.push(chunk);
  return reader.finish();
}

/** What an answer says to all servers: the rest is for the client that waits for it. */
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
  test('answers every command, range and event as a full copy per revision does', () => {
    fc.assert(
      fc.property(history, ranges, (steps, requests) => {
        const { model, machine } = run(steps);
        expectSame(machine, model, requests);
        while (machine.scrub(7));
        expectSame(machine, model, requests);
      }),
      { numRuns: 1.5 * histories },
    );
  });

  test('has the same hashes wherever the same entries were applied, however they were scrubbed', () => {
    fc.assert(
      fc.property(history, (steps) => {
        const { machine, entries } = run(steps);
        const unscrubbed = new StateMachine();
        for (const entry of entries) unscrubbed.apply(entry);
        expect(hashes(unscrubbed)).toEqual(hashes(machine));
        while (unscrubbed.scrub(1));
        expect(hashes(unscrubbed)).toEqual(hashes(machine));
      }),
      { numRuns: histories },
    );
  });

  test('is the same where nobody waits for the answers, with limits of transactions and without', () => {
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

  test('reads a range in slices as it reads it at once, whatever is written and scrubbed in between', () => {
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
            machine.scrub(step.scrubSteps);
          }
          release();
          expect(scan.result).toEqual(expected);
        }
        while (machine.scrub(7));
        expectSame(machine, model, requests);
      }),
      { numRuns: histories },
    );
  });

  test('is the same after a snapshot that was written while entries were applied, and those entries', () => {
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
          machine.scrub(step.scrubSteps);
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
        while (copy.scrub(5));
        while (machine.scrub(5));
        expectSame(copy, model, requests);
        expect(copy.sizeBytes).toBe(machine.sizeBytes);
        expect(copy.sizeInUseBytes).toBe(machine.sizeInUseBytes);
        expect(copy.sizeForQuotaBytes).toBe(machine.sizeForQuotaBytes);
        // Whoever compacts everything has as much space as what lives leaves.
        if (copy.compactRevision === copy.currentRevision) expect(copy.sizeForQuotaBytes).toBe(copy.sizeInUseBytes);
        expect(copy.sizeForQuotaBytes).toBeGreaterThanOrEqual(copy.sizeInUseBytes);
      }),
      { numRuns: histories },
    );
  });
});
