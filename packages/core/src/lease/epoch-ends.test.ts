import { describe, expect, test } from 'vitest';
import { EpochEnds } from './epoch-ends.ts';

describe('the ends of epochs', () => {
  test('are kept while a lease deadline depends on them', () => {
    const ends = new EpochEnds();
    ends.retain(0);
    ends.retain(0);
    expect(ends.endOf(0)).toBeUndefined();
    ends.begin(1, 500);
    ends.retain(1);
    ends.begin(2, 700);
    expect(ends.entries()).toEqual([
      [0, 500],
      [1, 700],
    ]);
    ends.release(0);
    expect(ends.endOf(0)).toBe(500);
    ends.release(0);
    expect(ends.entries()).toEqual([[1, 700]]);
  });

  test('are not kept for epochs without a lease', () => {
    const ends = new EpochEnds();
    for (let epoch = 1; epoch < 1000; epoch++) {
      ends.retain(epoch - 1);
      ends.release(epoch - 1);
      ends.begin(epoch, epoch);
    }
    expect(ends.entries()).toEqual([]);
  });
});
