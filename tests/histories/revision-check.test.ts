import { describe, expect, test } from 'vitest';
import { HistoryLog, type HistoryEvent } from './history-log.ts';
import type { KeyVersion, KvInput, KvOperation } from './kv-operation.ts';
import { checkRevisions } from './revision-check.ts';

/** Events of puts and deletes, with the numbers that follow from their order. */
function logOf(changes: readonly (readonly [revision: number, key: string, value: string | null, lease?: bigint])[]) {
  const held = new Map<string, KeyVersion>();
  const events = changes.map(([revision, key, value, lease = 0n]): HistoryEvent => {
    const before = held.get(key);
    held.delete(key);
    if (value === null) return { revision, key, version: undefined };
    const version = {
      value,
      lease,
      createRevision: before?.createRevision ?? revision,
      modRevision: revision,
      version: (before?.version ?? 0) + 1,
    };
    held.set(key, version);
    return { revision, key, version };
  });
  return new HistoryLog(events);
}

const call = (calledMs: number, returnedMs: number, input: KvInput, output?: KvOperationOutput): KvOperation => {
  const outcome = output === undefined ? ({ kind: 'unknown' } as const) : ({ kind: 'known', output } as const);
  return { client: 1, input, outcome, calledMs, returnedMs };
};
type KvOperationOutput = Extract<KvOperation['outcome'], { kind: 'known' }>['output'];

const put = (calledMs: number, returnedMs: number, value: string, revision: number, lease?: bigint): KvOperation =>
  call(
    calledMs,
    returnedMs,
    { kind: 'put', writes: [['k', value]], ...(lease === undefined ? {} : { lease }) },
    { revision, changed: true, seen: new Map() },
  );
const lostPut = (calledMs: number, value: string): KvOperation =>
  call(calledMs, calledMs, { kind: 'put', writes: [['k', value]] });
const both = (calledMs: number, value: string, revision: number): KvOperation =>
  call(
    calledMs,
    calledMs + 1,
    {
      kind: 'put',
      writes: [
        ['k', value],
        ['l', value],
      ],
    },
    { revision, changed: true, seen: new Map() },
  );
const read = (calledMs: number, returnedMs: number, revision: number, k: KeyVersion | null): KvOperation =>
  call(calledMs, returnedMs, { kind: 'get', keys: ['k'] }, { revision, changed: false, seen: new Map([['k', k]]) });
const v = (value: string, modRevision: number, version = modRevision - 1): KeyVersion => {
  return { value, createRevision: 2, modRevision, version, lease: 0n };
};

const twoPuts = logOf([
  [2, 'k', 'a'],
  [3, 'k', 'b'],
]);

describe('no violation is found in', () => {
  test.each<[string, KvOperation[], HistoryLog]>([
    ['nothing', [], logOf([])],
    ['calls in order', [put(0, 1, 'a', 2), put(2, 3, 'b', 3), read(4, 5, 3, v('b', 3))], twoPuts],
    ['a read before an overlapping write', [put(0, 1, 'a', 2), put(2, 9, 'b', 3), read(3, 4, 2, v('a', 2))], twoPuts],
    ['overlapping writes in the other order', [put(0, 9, 'b', 3), put(1, 8, 'a', 2)], twoPuts],
    ['an unknown write that took effect', [put(0, 1, 'a', 2), lostPut(2, 'b'), read(4, 5, 3, v('b', 3))], twoPuts],
    ['an unknown write that took no effect', [put(0, 1, 'a', 2), put(2, 3, 'b', 3), lostPut(0, 'c')], twoPuts],
    [
      'two keys written at once',
      [both(0, 'a', 2)],
      logOf([
        [2, 'k', 'a'],
        [2, 'l', 'a'],
      ]),
    ],
    [
      'the end of a lease',
      [put(0, 1, 'a', 2, 7n)],
      logOf([
        [2, 'k', 'a', 7n],
        [3, 'k', null],
      ]),
    ],
    [
      'a delete of nothing',
      [call(0, 1, { kind: 'delete', key: 'k' }, { revision: 1, changed: false, seen: new Map() })],
      logOf([]),
    ],
  ])('%s', (_, operations, log) => {
    expect(checkRevisions(operations, log)).toEqual([]);
  });
});

describe('a violation is found in', () => {
  const swap = (calledMs: number, expected: string, value: string, revision: number, changed: boolean): KvOperation =>
    call(calledMs, calledMs + 1, { kind: 'swap', key: 'k', expected, value }, { revision, changed, seen: new Map() });
  test.each<[string, KvOperation[], HistoryLog, RegExp]>([
    [
      'a stale read',
      [put(0, 1, 'a', 2), put(2, 3, 'b', 3), read(4, 5, 2, v('a', 2))],
      twoPuts,
      /began after this had been reported/,
    ],
    [
      'a read of another value',
      [put(0, 1, 'a', 2), put(2, 3, 'b', 3), read(4, 5, 3, v('a', 2))],
      twoPuts,
      /at revision 3 k was/,
    ],
    ['a lost write', [put(0, 1, 'a', 2), put(2, 3, 'b', 3)], logOf([[2, 'k', 'a']]), /log ends at revision 2/],
    ['a write with another value', [put(0, 1, 'a', 2)], logOf([[2, 'k', 'x']]), /the log has k=x/],
    [
      'a write that took effect twice',
      [put(0, 1, 'a', 2)],
      logOf([
        [2, 'k', 'a'],
        [3, 'k', 'a'],
      ]),
      /no call can have made/,
    ],
    [
      'an unknown write twice',
      [lostPut(0, 'a')],
      logOf([
        [2, 'k', 'a'],
        [3, 'k', 'a'],
      ]),
      /no call can have made/,
    ],
    ['writes in another order than theirs', [put(0, 1, 'b', 3), put(2, 3, 'a', 2)], twoPuts, /began after this/],
    [
      'two writes of one revision',
      [put(0, 1, 'a', 2), put(0, 1, 'a', 2)],
      logOf([[2, 'k', 'a']]),
      /the same revision as/,
    ],
    [
      'a read from the future',
      [read(0, 1, 2, v('a', 2)), put(2, 3, 'a', 2), put(2, 3, 'b', 3)],
      twoPuts,
      /had not been requested/,
    ],
    [
      'a failed write that took effect',
      [{ ...lostPut(0, 'a'), outcome: { kind: 'failed' } }],
      logOf([[2, 'k', 'a']]),
      /no call can have made/,
    ],
    [
      'an unknown write that is read, then unread',
      [put(0, 1, 'a', 2), lostPut(2, 'b'), read(3, 4, 3, v('b', 3)), read(5, 6, 2, v('a', 2))],
      twoPuts,
      /began after this/,
    ],
    [
      'an unknown write before its beginning',
      [put(0, 1, 'a', 2), read(2, 3, 3, v('b', 3)), lostPut(4, 'b')],
      twoPuts,
      /reported before/,
    ],
    ['a revision that goes back', [put(0, 1, 'a', 2), read(2, 3, 1, null)], logOf([[2, 'k', 'a']]), /began after this/],
    ['half of a transaction', [both(0, 'a', 2)], logOf([[2, 'k', 'a']]), /the log has/],
    [
      'half of a lease',
      [put(0, 1, 'a', 2, 7n)],
      logOf([
        [2, 'k', 'a', 7n],
        [3, 'l', 'x', 7n],
        [4, 'k', null],
      ]),
      /revision 4/,
    ],
    ['a swap of another value', [put(0, 1, 'a', 2), swap(2, 'x', 'b', 3, true)], twoPuts, /it cannot change it/],
    [
      'a swap that failed without a conflict',
      [put(0, 1, 'a', 2), swap(2, 'a', 'c', 2, false)],
      logOf([[2, 'k', 'a']]),
      /it changes it/,
    ],
    [
      'a hole',
      [put(0, 1, 'a', 2)],
      logOf([
        [2, 'k', 'a'],
        [4, 'k', null],
      ]),
      /4 is reported directly after 2/,
    ],
    [
      'an event that comes twice',
      [put(0, 1, 'a', 2)],
      logOf([
        [2, 'k', 'a'],
        [2, 'k', 'a'],
      ]),
      /changes twice/,
    ],
    [
      'an order that goes back',
      [],
      logOf([
        [2, 'k', 'a'],
        [3, 'k', 'b'],
        [2, 'l', 'c'],
      ]),
      /2 is reported after 3/,
    ],
  ])('%s', (_, operations, log, problem) => {
    expect(checkRevisions(operations, log).join('\n')).toMatch(problem);
  });

  test('the numbers of a version', () => {
    const wrong = { ...v('b', 3), version: 1 };
    const log = new HistoryLog([
      { revision: 2, key: 'k', version: v('a', 2) },
      { revision: 3, key: 'k', version: wrong },
    ]);
    expect(log.problems.join()).toContain('are 3, 2, 1 and should be 3, 2, 2');
  });
});

test('a hundred thousand calls are checked in one pass', () => {
  const count = 100_000;
  const changes = Array.from({ length: count }, (_, at) => [at + 2, 'k', `${at}`] as const);
  const operations = changes.map(([revision, , value], at) => put(at * 2, at * 2 + 3, value, revision));
  expect(checkRevisions(operations, logOf(changes))).toEqual([]);
});
