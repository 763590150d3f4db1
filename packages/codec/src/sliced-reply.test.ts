import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { headerInBothForms } from './testing/headers.ts';
import { rangeResult } from './testing/shape-arbitraries.ts';
import { encodeRangeResponse, rangeReplyList } from './range.ts';
import { SlicedReply } from './sliced-reply.ts';

describe('a reply in slices', () => {
  test('has the same bytes as one that is written at once, for any pieces', () => {
    fc.assert(
      fc.property(
        headerInBothForms,
        rangeResult,
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 1, max: 500 }),
        ({ header }, result, itemsAStep, pieceBytes) => {
          const reply = new SlicedReply(rangeReplyList(header, result), pieceBytes);
          while (!reply.measure(itemsAStep));
          const expected = encodeRangeResponse(header, result);
          expect(reply.framedBytes).toBe(expected.length);
          const pieces: Buffer[] = [];
          for (let left = expected.length; left > 0; left -= pieces.at(-1)!.length) pieces.push(reply.nextPiece());
          expect(Buffer.concat(pieces).subarray(5)).toEqual(expected.subarray(5));
        },
      ),
    );
  });

  test('measures no more in a step than requested', () => {
    const items = Array.from({ length: 1_000 }, (_, at) => at);
    let written = 0;
    const reply = new SlicedReply<number>(
      {
        items,
        itemSize: () => 100,
        writeItem: (_out, at) => (written++, at + 100),
        headSize: 0,
        tailSize: 0,
        writeHead: (_out, at) => at,
        writeTail: (_out, at) => at,
      },
      1_000,
    );
    let steps = 1;
    while (!reply.measure(10)) steps++;
    expect(steps).toBe(100);
    expect(reply.framedBytes).toBe(100_005);
    for (let left = reply.framedBytes; left > 0;) {
      written = 0;
      left -= reply.nextPiece().length;
      expect(written).toBeLessThanOrEqual(10);
    }
  });
});
