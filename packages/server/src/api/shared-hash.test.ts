import { type Command, StateMachine } from '@tenure/core';
import { expect, test, vi } from 'vitest';
import { maxHashCallers, SharedHash, type StateHash } from './shared-hash.ts';
import { systemClock } from '../time/system-clock.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function apply(state: StateMachine, ...commands: Command[]): void {
  state.apply({ index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands });
}

function put(key: string): Command {
  return { kind: 'put', put: { key, value: 'v', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false } };
}

/** So many keys that a hash takes several turns of the event loop. */
function large(): StateMachine {
  const state = new StateMachine();
  apply(state, ...Array.from({ length: 12_000 }, (_, i) => put(`key ${i}`)));
  return state;
}

function hashOf(state: StateMachine): number {
  const steps = state.snapshot();
  for (const chunk of steps) void chunk;
  return steps.check;
}

function caller(): AbortController {
  return new AbortController();
}

/** The error of a refusal. Called at once, so that the refusal may come before the test waits for it. */
function errorOf(answer: Promise<unknown>): Promise<unknown> {
  return answer.then(
    () => undefined,
    (error: unknown) => error,
  );
}

test('callers at one state share one hash, also those that arrive while it is computed', async () => {
  const state = large();
  const expected = hashOf(state);
  const begun = vi.spyOn(state, 'snapshot');
  const shared = new SharedHash(state, systemClock);
  const answers = Array.from({ length: 500 }, () => shared.next(caller().signal));
  await turn();
  answers.push(shared.next(caller().signal));
  for (const answer of await Promise.all(answers)) {
    expect(answer).toEqual({ hash: expected, revision: state.currentRevision, epoch: 0 });
  }
  expect(begun).toHaveBeenCalledTimes(1);
});

test('callers at later states wait for one more hash, of the state when it begins', async () => {
  const state = large();
  const first = { hash: hashOf(state), revision: state.currentRevision, epoch: 0 };
  const begun = vi.spyOn(state, 'snapshot');
  const shared = new SharedHash(state, systemClock);
  const early = shared.next(caller().signal);
  const late: Promise<StateHash>[] = [];
  for (let i = 0; i < 5; i += 1) {
    apply(state, put(`late ${i}`));
    late.push(shared.next(caller().signal));
    await turn();
  }
  expect(begun).toHaveBeenCalledTimes(1);
  expect(await early).toEqual(first);
  const answers = await Promise.all(late);
  expect(begun).toHaveBeenCalledTimes(2);
  const second = { hash: hashOf(state), revision: state.currentRevision, epoch: 0 };
  for (const answer of answers) expect(answer).toEqual(second);
  expect(second.hash).not.toBe(first.hash);
});

test('a hash that all its callers have cancelled stops and releases its memory; the next begins', async () => {
  const state = large();
  const begun = vi.spyOn(state, 'snapshot');
  const shared = new SharedHash(state, systemClock);
  const callers = [caller(), caller()];
  const left = callers.map(({ signal }) => shared.next(signal));
  const refused = left.map(errorOf);
  apply(state, put('key 1'), { kind: 'compact', revision: state.currentRevision + 1 });
  const stays = shared.next(caller().signal);
  callers[0]!.abort();
  await turn();
  expect(begun).toHaveBeenCalledTimes(1);
  expect(state.isGarbageCollectionPaused).toBe(true);
  callers[1]!.abort();
  for (const error of await Promise.all(refused)) expect(error).toMatchObject({ code: 1 });
  await turn();
  expect(begun).toHaveBeenCalledTimes(2);
  expect(state.isGarbageCollectionPaused).toBe(false);
  expect(begun.mock.results[0]!.value.next()).toEqual({ done: true, value: undefined });
  expect((await stays).hash).toBe(hashOf(state));
});

test('a caller that joins a hash in the turn in which all others left it gets a complete one', async () => {
  const state = large();
  const expected = hashOf(state);
  const shared = new SharedHash(state, systemClock);
  for (let turns = 0; turns < 3; turns += 1) {
    const first = caller();
    const left = errorOf(shared.next(first.signal));
    for (let i = 0; i < turns; i += 1) await turn();
    first.abort();
    const joins = [shared.next(caller().signal)];
    expect(await left).toMatchObject({ code: 1 });
    joins.push(shared.next(caller().signal));
    for (const answer of await Promise.all(joins)) expect(answer.hash).toBe(expected);
  }
});

test('no hash begins for callers that left before it could, and none for an ended call', async () => {
  const state = large();
  const begun = vi.spyOn(state, 'snapshot');
  const shared = new SharedHash(state, systemClock);
  const over = caller();
  over.abort();
  await expect(shared.next(over.signal)).rejects.toMatchObject({ code: 1 });
  expect(begun).not.toHaveBeenCalled();
  const early = shared.next(caller().signal);
  apply(state, put('late'));
  const late = caller();
  const left = errorOf(shared.next(late.signal));
  late.abort();
  expect(await left).toMatchObject({ code: 1 });
  await early;
  await turn();
  expect(begun).toHaveBeenCalledTimes(1);
});

test('no more callers wait than its limit, and each that leaves makes room', async () => {
  const state = large();
  const shared = new SharedHash(state, systemClock);
  const callers = Array.from({ length: maxHashCallers }, caller);
  const answers = callers.map(({ signal }) => shared.next(signal).catch(() => undefined));
  await expect(shared.next(caller().signal)).rejects.toMatchObject({ code: 8 });
  callers[0]!.abort();
  const last = await shared.next(caller().signal);
  expect(last.hash).toBe(hashOf(state));
  await Promise.all(answers);
});
