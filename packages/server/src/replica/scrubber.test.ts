import { StateMachine, type Command } from '@tenure/core';
import { expect, test } from 'vitest';
import { Scrubber } from './scrubber.ts';
import { systemClock } from '../time/system-clock.ts';

function apply(state: StateMachine, ...commands: Command[]): void {
  state.apply({ index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands });
}

function put(value: string): Command {
  const key = 'key';
  return { kind: 'put', put: { key, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false } };
}

/** With nothing else to run, each turn of the event loop lets a scrubber that is awake do a slice. */
async function scrubbed(state: StateMachine): Promise<void> {
  while (state.sizeBytes > state.sizeInUseBytes) await new Promise((resolve) => setImmediate(resolve));
}

test('frees what was compacted while a snapshot was being taken, when that is done', async () => {
  const state = new StateMachine();
  for (let version = 0; version < 50; version += 1) apply(state, put('x'.repeat(1_000)));
  const scrubber = new Scrubber(state, systemClock);
  const snapshot = state.snapshot();
  snapshot.next();
  apply(state, { kind: 'compact', revision: state.currentRevision });
  scrubber.wake();
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(state.sizeBytes).toBeGreaterThan(state.sizeInUseBytes);
  snapshot.return();
  await scrubbed(state);
  expect(state.sizeBytes).toBe(state.sizeInUseBytes);
  scrubber.stop();
});

test('goes on with what was left while a snapshot is taken that began in the middle', async () => {
  const state = new StateMachine();
  for (let version = 0; version < 5_000; version += 1) apply(state, put('x'));
  const scrubber = new Scrubber(state, systemClock);
  apply(state, { kind: 'compact', revision: state.currentRevision });
  scrubber.wake();
  await new Promise((resolve) => setImmediate(resolve));
  const snapshot = state.snapshot();
  await scrubbed(state);
  expect(state.sizeBytes).toBe(state.sizeInUseBytes);
  snapshot.return();
  scrubber.stop();
});
