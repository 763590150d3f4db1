import { describe, expect, test } from 'vitest';
import type { Claim, Entry } from '../../backend/lease-backend.ts';
import { checkHistory } from './history-check.ts';
import { History } from './history.ts';
import type { Operation, ClaimRecord } from './history.ts';

const claim = (id: string): Claim => {
  return { name: 'job', id, holder: 'h', mode: 'exclusive', permits: 1, ttlMs: 100, data: '' };
};
const entry = (id: string, sequence: bigint, data = ''): Entry => {
  return { ...claim(id), sequence, data, expiresInMs: undefined };
};

function record(
  id: string,
  sequence: bigint | undefined,
  at: readonly [number, number],
  operations: Operation[] = [],
): ClaimRecord {
  return { claim: claim(id), sequence, sentMs: at[0], answeredMs: at[1], operations };
}

function operation(
  kind: Operation['kind'],
  at: readonly [number, number],
  isDone: boolean | undefined,
  what = {},
): Operation {
  return { kind, sentMs: at[0], answeredMs: at[1], isDone, ttlMs: 100, data: '', ...what };
}

function check(
  records: readonly ClaimRecord[],
  reads: readonly (readonly [number, number, ...Entry[]])[],
): readonly string[] {
  const history = new History();
  history.records.push(...records);
  for (const [sentMs, answeredMs, ...entries] of reads) {
    history.reads.push({ name: 'job', sentMs, answeredMs, entries });
  }
  return checkHistory(history);
}

describe('checkHistory', () => {
  const a = entry('a', 1n);
  const b = entry('b', 2n);

  test('accepts valid histories', () => {
    const renewed = record(
      'a',
      1n,
      [0, 2],
      [operation('renew', [50, 52], true), operation('leave', [200, 210], false)],
    );
    expect(
      check(
        [renewed],
        [
          [3, 4, a],
          [60, 149, a],
          [151, 160],
          [161, 170],
        ],
      ),
    ).toEqual([]);
    // Overlapping calls may be answered in either order.
    expect(
      check(
        [record('a', 1n, [0, 10]), record('b', 2n, [0, 10])],
        [
          [1, 9, a, b],
          [2, 8],
          [2, 8, a],
        ],
      ),
    ).toEqual([]);
  });

  test('detects two holders, a wrong order and a claim that was entered twice', () => {
    expect(check([], [[0, 1, b, a]]).join()).toMatch(/not in the order/);
    expect(check([], [[0, 1, a, entry('a', 2n)]]).join()).toMatch(/entered twice/);
    expect(check([record('b', 2n, [0, 1]), record('a', 1n, [2, 3])], [[0, 1]]).join()).toMatch(
      /sequence number 1 was given after 2/,
    );
  });

  test('detects an entry that appears before entries seen earlier', () => {
    expect(
      check(
        [],
        [
          [0, 1, b],
          [2, 3, a, b],
        ],
      ).join(),
    ).toMatch(/appeared after sequence number 2/);
  });

  test('detects a live entry that is missing', () => {
    expect(check([record('a', 1n, [0, 2])], [[3, 99]]).join()).toMatch(/lives and is not shown/);
    const refused = record('a', 1n, [0, 2], [operation('renew', [50, 60], false)]);
    expect(check([refused], [[0, 1]]).join()).toMatch(/renew of a was refused/);
  });

  test('detects an entry that reappears', () => {
    const reads = [
      [0, 3, a],
      [101, 102],
      [103, 104, a],
    ] as const;
    expect(check([record('a', 1n, [0, 2])], reads).join()).toMatch(/gone and is shown again/);
    const renewed = record('a', 1n, [0, 2], [operation('renew', [103, 104], true)]);
    expect(check([renewed], reads.slice(0, 2)).join()).toMatch(/gone and renew was done/);
  });

  test('detects a refused entry that is listed, and data of another time', () => {
    expect(check([record('a', undefined, [0, 2])], [[3, 4, a]]).join()).toMatch(/was not entered and is shown/);
    const updated = record('a', 1n, [0, 2], [operation('update', [10, 11], true, { data: 'new' })]);
    expect(check([updated], [[12, 13, a]]).join()).toMatch(/shown with the data ""/);
    expect(
      check(
        [updated],
        [
          [10.5, 13, a],
          [12, 13, entry('a', 1n, 'new')],
        ],
      ),
    ).toEqual([]);
  });
});
