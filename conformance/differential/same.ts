import { expect } from 'vitest';
import type { Operation } from './operation.ts';
import { isRefusal, type RunEnd } from './run.ts';

export interface Answers {
  readonly call: Operation['call'];
  readonly actual: unknown;
  readonly expected: unknown;
  /** The calls so far, for the failure message. */
  readonly calls: string;
}

export function expectSameAnswer({ call, actual, expected, calls }: Answers): void {
  // etcd 3.6 reports the first fault in a transaction; 3.4 checks all puts before the ranges.
  if (call === 'txn' && isRefusal(expected)) expect(isRefusal(actual), calls).toBe(true);
  else expect(actual, calls).toEqual(expected);
}

/**
 * The same keys, and the same events for each watch. Whether a watch with compacted revisions still gets the earlier
 * ones depends on timing, and so does a previous pair that is about to be compacted: the one that has less is correct.
 */
export function expectSameEnd(actual: RunEnd, expected: RunEnd, calls: string): void {
  expect(actual.state, calls).toEqual(expected.state);
  for (const [index, reference] of expected.watched.entries()) {
    const subject = actual.watched[index] ?? { events: [], isCutShort: false };
    const isCutShort = reference.isCutShort || subject.isCutShort;
    const length = isCutShort ? Math.min(reference.events.length, subject.events.length) : reference.events.length;
    const [expectedEvents, actualEvents] = [reference, subject].map(({ events }) =>
      (isCutShort ? events.slice(0, length) : events).map(withoutPrevious),
    );
    expect(actualEvents, calls).toEqual(expectedEvents);
    for (let at = 0; at < length; at += 1) {
      const [expectedPrevious, actualPrevious] = [previousOf(reference.events[at]), previousOf(subject.events[at])];
      if (expectedPrevious === undefined || actualPrevious === undefined) continue;
      expect(actualPrevious, calls).toEqual(expectedPrevious);
    }
  }
}

const previousOf = (event: unknown): unknown => (event as { prevKv?: unknown }).prevKv;

function withoutPrevious(event: unknown): unknown {
  const { prevKv: _, ...rest } = event as { prevKv?: unknown };
  return rest;
}
