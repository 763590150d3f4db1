import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Claim, Entry } from '../../backend/lease-backend.ts';
import { checkHistory } from './history-check.ts';
import { History } from './history.ts';
import type { Deed, Life } from './history.ts';

const claim = (id: string): Claim => {
  return { name: 'job', id, holder: 'h', mode: 'exclusive', permits: 1, ttlMs: 100, data: '' };
};
const entry = (id: string, ticket: bigint, data = ''): Entry => {
  return { ...claim(id), ticket, data, expiresInMs: undefined };
};

function life(id: string, ticket: bigint | undefined, at: readonly [number, number], deeds: Deed[] = []): Life {
  return { claim: claim(id), ticket, sentMs: at[0], answeredMs: at[1], deeds };
}

function deed(kind: Deed['kind'], at: readonly [number, number], isDone: boolean | undefined, what = {}): Deed {
  return { kind, sentMs: at[0], answeredMs: at[1], isDone, ttlMs: 100, data: '', ...what };
}

function check(lives: readonly Life[], looks: readonly (readonly [number, number, ...Entry[]])[]): readonly string[] {
  const history = new History();
  history.lives.push(...lives);
  for (const [sentMs, answeredMs, ...entries] of looks) {
    history.looks.push({ name: 'job', sentMs, answeredMs, entries });
  }
  return checkHistory(history);
}

describe('checkHistory', () => {
  const a = entry('a', 1n);
  const b = entry('b', 2n);

  test('finds nothing in what may happen', () => {
    const renewed = life('a', 1n, [0, 2], [deed('renew', [50, 52], true), deed('leave', [200, 210], false)]);
    assert.deepEqual(
      check(
        [renewed],
        [
          [3, 4, a],
          [60, 149, a],
          [151, 160],
          [161, 170],
        ],
      ),
      [],
    );
    // Calls that overlap may be answered in either order.
    assert.deepEqual(
      check(
        [life('a', 1n, [0, 10]), life('b', 2n, [0, 10])],
        [
          [1, 9, a, b],
          [2, 8],
          [2, 8, a],
        ],
      ),
      [],
    );
  });

  test('finds two that hold, a wrong order and a claim that was entered twice', () => {
    assert.match(check([], [[0, 1, b, a]]).join(), /not in the order/);
    assert.match(check([], [[0, 1, a, entry('a', 2n)]]).join(), /entered twice/);
    assert.match(check([life('b', 2n, [0, 1]), life('a', 1n, [2, 3])], [[0, 1]]).join(), /ticket 1 was given after 2/);
  });

  test('finds an entry that appears before others that were seen', () => {
    assert.match(
      check(
        [],
        [
          [0, 1, b],
          [2, 3, a, b],
        ],
      ).join(),
      /appeared after ticket 2/,
    );
  });

  test('finds one that is missing while it lives', () => {
    assert.match(check([life('a', 1n, [0, 2])], [[3, 99]]).join(), /lives and is not shown/);
    const refused = life('a', 1n, [0, 2], [deed('renew', [50, 60], false)]);
    assert.match(check([refused], [[0, 1]]).join(), /renew of a was refused/);
  });

  test('finds one that comes back', () => {
    const looks = [
      [0, 3, a],
      [101, 102],
      [103, 104, a],
    ] as const;
    assert.match(check([life('a', 1n, [0, 2])], looks).join(), /gone and is shown again/);
    const renewed = life('a', 1n, [0, 2], [deed('renew', [103, 104], true)]);
    assert.match(check([renewed], looks.slice(0, 2)).join(), /gone and renew was done/);
  });

  test('finds one that was refused and is shown, and data of another time', () => {
    assert.match(check([life('a', undefined, [0, 2])], [[3, 4, a]]).join(), /was not entered and is shown/);
    const updated = life('a', 1n, [0, 2], [deed('update', [10, 11], true, { data: 'new' })]);
    assert.match(check([updated], [[12, 13, a]]).join(), /shown with the data ""/);
    assert.deepEqual(
      check(
        [updated],
        [
          [10.5, 13, a],
          [12, 13, entry('a', 1n, 'new')],
        ],
      ),
      [],
    );
  });
});
