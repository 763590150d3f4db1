import { StateMachine, type Command } from '@tenure/core';
import { expect, test } from 'vitest';
import { HistoryCollector } from './history-collector.ts';
import { systemClock } from '../time/system-clock.ts';

function apply(state: StateMachine, ...commands: Command[]): void {
  state.apply({ index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands });
}

function put(value: string): Command {
  const key = 'key';
  return { kind: 'put', put: { key, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false } };
}

/** With nothing else to run, each turn of the event loop runs one slice of an active collector. */
async function collected(state: StateMachine): Promise<void> {
  while (state.sizeBytes > state.sizeInUseBytes) await new Promise((resolve) => setImmediate(resolve));
}

test('frees history compacted during a snapshot after the snapshot', async () => {
  const state = new StateMachine();
  for (let version = 0; version < 50; version += 1) apply(state, put('x'.repeat(1_000)));
  const collector = new HistoryCollector(state, systemClock);
  const snapshot = state.snapshot();
  snapshot.next();
  apply(state, { kind: 'compact', revision: state.currentRevision });
  collector.wake();
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(state.sizeBytes).toBeGreaterThan(state.sizeInUseBytes);
  snapshot.return();
  await collected(state);
  expect(state.sizeBytes).toBe(state.sizeInUseBytes);
  collector.stop();
});

test('continues after a snapshot that began during collection', async () => {
  const state = new StateMachine();
  for (let version = 0; version < 5_000; version += 1) apply(state, put('x'));
  const collector = new HistoryCollector(state, systemClock);
  apply(state, { kind: 'compact', revision: state.currentRevision });
  collector.wake();
  await new Promise((resolve) => setImmediate(resolve));
  const snapshot = state.snapshot();
  await collected(state);
  expect(state.sizeBytes).toBe(state.sizeInUseBytes);
  snapshot.return();
  collector.stop();
});
