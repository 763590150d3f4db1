import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  expectSameBytes,
  readsWhatTheGeneratedReads,
  refusesExactlyWhatIsInvalid,
} from './testing/codec-properties.ts';
import { deleteRangeResponseMessage } from './testing/generated-replies.ts';
import { deleteRangeMessage, deleteRangeShape } from './testing/generated-requests.ts';
import { headerInBothForms } from './testing/headers.ts';
import { deleteRangeRequest, deleteRangeResult } from './testing/shape-arbitraries.ts';
import {
  decodeDeleteRangeRequest,
  deleteRangeRequestSize,
  encodeDeleteRangeRequest,
  deleteRangeReplyList,
} from './delete-range.ts';
import { frameHeadroomBytes } from './frame.ts';
import { encodeList } from './sliced-reply.ts';
import { etcdserverpb } from '@tenure/protocol';

const { DeleteRangeRequestSchema, DeleteRangeResponseSchema } = etcdserverpb;

const codec = { schema: DeleteRangeRequestSchema, decode: decodeDeleteRangeRequest, shape: deleteRangeShape };

describe('a delete request', () => {
  test('is written as the generated codec writes it, and read back', () => {
    fc.assert(
      fc.property(deleteRangeRequest, (request) => {
        const framed = encodeDeleteRangeRequest(request);
        expect(framed.length).toBe(frameHeadroomBytes + deleteRangeRequestSize(request));
        expectSameBytes(framed, DeleteRangeRequestSchema, deleteRangeMessage(request));
        expect(decodeDeleteRangeRequest(framed, frameHeadroomBytes)).toEqual(request);
      }),
    );
  });

  test('is read as the generated codec reads it', () => readsWhatTheGeneratedReads(codec));

  test('is refused exactly when it is no message', () => refusesExactlyWhatIsInvalid(codec));
});

describe('the reply to a delete', () => {
  test('is written as the generated codec writes it', () => {
    fc.assert(
      fc.property(headerInBothForms, deleteRangeResult, ({ header, message }, result) => {
        expectSameBytes(
          encodeList(deleteRangeReplyList(header, result)),
          DeleteRangeResponseSchema,
          deleteRangeResponseMessage(message, result),
        );
      }),
    );
  });
});
