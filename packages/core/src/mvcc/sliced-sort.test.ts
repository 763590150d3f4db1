import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SlicedSort } from './sliced-sort.ts';

interface Item {
  readonly rank: number;
  readonly place: number;
}

function sortInSlices(
  ranks: readonly number[],
  sliceItems: number,
  keep?: number,
  costOf?: (item: Item) => number,
): { sorted: Item[]; steps: number } {
  const items = ranks.map((rank, place) => ({ rank, place }));
  const sort = new SlicedSort<Item>(items, (a, b) => a.rank - b.rank, {
    ...(keep !== undefined && { keep }),
    ...(costOf && { costOf }),
  });
  let steps = 1;
  while (!sort.step(sliceItems)) steps++;
  return { sorted: sort.sorted, steps };
}

describe('a sort in slices', () => {
  test('gives the result of a stable sort, cut at the limit', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 6_000, size: 'max' }),
        fc.integer({ min: 1, max: 3_000 }),
        fc.option(fc.oneof(fc.nat({ max: 10 }), fc.nat({ max: 3_000 })), { nil: undefined }),
        (ranks, sliceItems, keep) => {
          const expected = ranks.map((rank, place) => ({ rank, place })).sort((a, b) => a.rank - b.rank);
          const { sorted } = sortInSlices(ranks, sliceItems, keep);
          expect(sorted).toEqual(expected.slice(0, keep));
          const weighed = sortInSlices(ranks, sliceItems, keep, ({ rank }) => rank ** 3);
          expect(weighed.sorted).toEqual(expected.slice(0, keep));
        },
      ),
    );
  });

  test('makes in one step no more comparisons than a few runs need', () => {
    const ranks = Array.from({ length: 100_000 }, (_, place) => (place * 7_919) % 100_003);
    let compared = 0;
    let most = 0;
    const sort = new SlicedSort(ranks, (a, b) => {
      compared++;
      return a - b;
    });
    for (let done = false; !done;) {
      compared = 0;
      done = sort.step(1_000);
      most = Math.max(most, compared);
    }
    expect(most).toBeLessThan(25_000);
    expect(sort.sorted).toEqual(ranks.toSorted((a, b) => a - b));
  });

  test.each([1, 2, 50])('finds the first %i of many items with few comparisons', (keep) => {
    const ranks = Array.from({ length: 100_000 }, (_, place) => (place * 7_919) % 100_003);
    let compared = 0;
    const compare = (a: number, b: number): number => (compared++, a - b);
    const sort = new SlicedSort(ranks, compare, { keep });
    while (!sort.step(1_000));
    expect(compared).toBeLessThan(2 * ranks.length);
    expect(sort.sorted).toEqual(ranks.toSorted((a, b) => a - b).slice(0, keep));
  });

  test('finds the last of many items, as a client does for the newest key, with few comparisons', () => {
    const ranks = Array.from({ length: 100_000 }, (_, place) => place);
    let compared = 0;
    const sort = new SlicedSort(ranks, (a: number, b: number) => (compared++, b - a), { keep: 2 });
    while (!sort.step(1_000));
    expect(compared).toBeLessThanOrEqual(2 * ranks.length);
    expect(sort.sorted).toEqual([99_999, 99_998]);
  });

  test('compares few items in one step when each is expensive', () => {
    let compared = 0;
    const items = Array.from({ length: 300 }, (_, place) => (place * 7_919) % 307);
    const compare = (a: number, b: number): number => (compared++, a - b);
    const sort = new SlicedSort(items, compare, { costOf: () => 20_000 });
    let most = 0;
    for (let done = false; !done;) {
      compared = 0;
      done = sort.step(1_000);
      most = Math.max(most, compared);
    }
    expect(most).toBeLessThanOrEqual(2);
    expect(sort.sorted).toEqual(items.toSorted((a, b) => a - b));
  });

  test('takes a number of steps proportional to the work', () => {
    expect(sortInSlices([], 10)).toEqual({ sorted: [], steps: 1 });
    expect(sortInSlices([3, 1, 2], 10).steps).toBe(1);
    expect(
      sortInSlices(
        Array.from({ length: 5_000 }, (_, place) => -place),
        100,
      ).steps,
    ).toBeGreaterThan(50);
  });
});
