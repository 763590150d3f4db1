import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  expectSameBytes,
  readsWhatTheGeneratedReads,
  refusesExactlyWhatIsInvalid,
} from './testing/codec-properties.ts';
import { rangeResponseMessage } from './testing/generated-replies.ts';
import { rangeMessage, rangeShape } from './testing/generated-requests.ts';
import { headerInBothForms } from './testing/headers.ts';
import { rangeRequest, rangeResult } from './testing/shape-arbitraries.ts';
import { frameHeadroomBytes } from './frame.ts';
import { decodeRangeRequest, encodeRangeRequest, encodeRangeResponse, rangeReplyList } from './range.ts';
import { encodeList } from './sliced-reply.ts';
import { etcdserverpb } from '@tenure/protocol';

const { RangeRequestSchema, RangeResponseSchema } = etcdserverpb;

const codec = { schema: RangeRequestSchema, decode: decodeRangeRequest, shape: rangeShape };

describe('a range request', () => {
  test('is written as the generated codec writes it, and read back', () => {
    fc.assert(
      fc.property(rangeRequest, (range) => {
        const framed = encodeRangeRequest(range);
        expectSameBytes(framed, RangeRequestSchema, rangeMessage(range));
        expect(decodeRangeRequest(framed, frameHeadroomBytes)).toEqual(range);
      }),
    );
  });

  test('is read as the generated codec reads it', () => readsWhatTheGeneratedReads(codec));

  test('is refused exactly when it is no message', () => refusesExactlyWhatIsInvalid(codec));
});

describe('the reply to a range', () => {
  test('is written as the generated codec writes it', () => {
    fc.assert(
      fc.property(headerInBothForms, rangeResult, ({ header, message }, result) => {
        const expected = rangeResponseMessage(message, result);
        expectSameBytes(encodeRangeResponse(header, result), RangeResponseSchema, expected);
        expectSameBytes(encodeList(rangeReplyList(header, result)), RangeResponseSchema, expected);
      }),
    );
  });
});
