import { expect, test } from 'vitest';
import type { SeenEvent } from '../cluster/lasting-watch.ts';
import { judgeHolds } from './queue-judge.ts';

const event = (revision: number, key: string, value: string | undefined): SeenEvent => ({
  revision,
  key,
  value,
  atMs: 0,
});
const history = [
  event(2, 'b', ''),
  event(3, 'a', ''),
  event(4, 'b', 'changed'),
  event(5, 'c', ''),
  event(6, 'b', undefined),
  event(7, 'b', ''),
  event(8, 'a', undefined),
  event(8, 'c', undefined),
];

test('accepts holds of the oldest key, in any order of the replies', () => {
  const holds = [
    { key: 'a', revision: 6 },
    { key: 'b', revision: 2 },
    { key: 'b', revision: 5 },
    { key: 'b', revision: 8 },
  ];
  expect(() => judgeHolds(history, holds)).not.toThrow();
});

test('finds a hold beside an older key, also one that was created again, and one without a key', () => {
  expect(() => judgeHolds(history, [{ key: 'a', revision: 4 }])).toThrow('and b was older');
  expect(() => judgeHolds(history, [{ key: 'b', revision: 7 }])).toThrow('and a was older');
  expect(() => judgeHolds(history, [{ key: 'c', revision: 4 }])).toThrow('was not there');
  expect(() => judgeHolds(history, [{ key: 'c', revision: 8 }])).toThrow('was not there');
});
