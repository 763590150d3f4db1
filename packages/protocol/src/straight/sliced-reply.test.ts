import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { headerInBothForms } from '../testing/headers.ts';
import { rangeResult } from '../testing/shape-arbitraries.ts';
import { encodeRangeResponse, rangeReplyList } from './range.ts';
import { SlicedReply } from './sliced-reply.ts';

describe('a reply in slices', () => {
  it('has the same bytes as one that is written at once, however it is sliced', () => {
    fc.assert(
      fc.property(
        headerInBothForms,
        rangeResult,
        fc.integer({ min: 1, max: 500 }),
        fc.integer({ min: 1, max: 500 }),
        ({ header }, result, measureCost, writeCost) => {
          const reply = new SlicedReply(rangeReplyList(header, result));
          while (!reply.measure(measureCost));
          const expected = encodeRangeResponse(header, result);
          expect(reply.framedBytes).toBe(expected.length);
          while (!reply.write(writeCost));
          expect(reply.framed.subarray(5)).toEqual(expected.subarray(5));
        },
      ),
    );
  });

  it('does about as much in a slice as it is told', () => {
    const items = Array.from({ length: 1_000 }, (_, at) => at);
    let touched = 0;
    const reply = new SlicedReply<number>({
      items,
      itemSize: () => (touched++, 100),
      writeItem: (_out, at) => (touched++, at + 100),
      frameSize: 0,
      writeHead: (_out, at) => at,
      writeTail: (_out, at) => at,
    });
    for (let slices = 1; ; slices++) {
      touched = 0;
      const done = reply.measure(640);
      expect(touched).toBe(10);
      if (done) {
        expect(slices).toBe(100);
        break;
      }
    }
    expect(reply.framedBytes).toBe(100_005);
    for (let slices = 1; ; slices++) {
      touched = 0;
      const done = reply.write(1_640);
      expect(touched).toBeLessThanOrEqual(10);
      if (done) {
        expect(slices).toBe(100);
        break;
      }
    }
  });
});
