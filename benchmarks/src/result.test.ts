import { expect, test } from 'vitest';
import type { Machine } from './machine.ts';
import { isReached, makeResults, ratioOf } from './result.ts';

const machine: Machine = {
  date: '2026-01-01',
  processor: 'any',
  cores: 2,
  memoryGib: 1,
  kernel: 'any',
  node: 'any',
  etcd: 'any',
  h2load: 'any',
};

const scenario = {
  name: 'rate',
  work: 'work',
  unit: '1/s',
  rounds: 3,
  target: { kind: 'ratioAtLeast', bound: 1.5 },
  furtherRows: [
    {
      name: 'wait',
      work: 'longest wait',
      unit: 'ms',
      target: { kind: 'ratioAtMost', bound: 1 },
      detail: 'longest, ms',
    },
  ],
} as const;

function samples(value: number, longestMs: number): { value: number; details: Record<string, number> }[] {
  return [0.5, 1, 2].map((factor) => ({
    value: value * factor,
    details: { 'longest, ms': longestMs * factor, 'memory, MiB': 7 },
  }));
}

test('makes a row of the median, and one of each named detail, which is not repeated', () => {
  const taken = new Map([
    ['etcd', samples(100, 10)],
    ['Tenure', samples(160, 12)],
  ]);
  const [rate, wait] = makeResults(scenario, machine, taken);
  expect(rate).toMatchObject({
    name: 'rate',
    rounds: 3,
    medians: { etcd: { value: 100, details: { 'memory, MiB': 7 } }, Tenure: { value: 160 } },
  });
  expect(rate?.medians['etcd']?.details).toEqual({ 'memory, MiB': 7 });
  expect(wait).toMatchObject({ name: 'wait', unit: 'ms', medians: { etcd: { value: 10 }, Tenure: { value: 12 } } });
  expect(rate && [ratioOf(rate), isReached(rate)]).toEqual([1.6, true]);
  expect(wait && [ratioOf(wait), isReached(wait)]).toEqual([1.2, false]);
});

test('has no number for a detail that a server does not report', () => {
  const [, wait] = makeResults(scenario, machine, new Map([['etcd', [{ value: 1 }]]]));
  expect(wait?.medians['etcd']).toEqual({ value: null, details: {} });
});
