import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { expectSameBytes } from './testing/codec-properties.ts';
import { eventMessage } from './testing/generated-replies.ts';
import { headerInBothForms } from './testing/headers.ts';
import { int64, kvEvent, safeInteger, text } from './testing/shape-arbitraries.ts';
import { encodeWatchResponse, watchEventSize } from './watch-response.ts';
import { etcdserverpb } from '@tenure/protocol';

const { WatchResponseSchema } = etcdserverpb;

const fields = fc.record({
  created: fc.boolean(),
  canceled: fc.boolean(),
  compactRevision: safeInteger,
  cancelReason: text,
  fragment: fc.boolean(),
  events: fc.array(kvEvent, { maxLength: 5 }),
  withPrevKv: fc.boolean(),
});

describe('a watch response', () => {
  test('is written as the generated codec writes it', () => {
    fc.assert(
      fc.property(headerInBothForms, int64, fields, ({ header, message }, watchId, it) => {
        const expected = create(WatchResponseSchema, {
          header: message,
          watchId,
          created: it.created,
          canceled: it.canceled,
          compactRevision: BigInt(it.compactRevision),
          cancelReason: it.cancelReason,
          fragment: it.fragment,
          events: it.events.map((event) => eventMessage(event, it.withPrevKv)),
        });
        expectSameBytes(encodeWatchResponse(header, watchId, it), WatchResponseSchema, expected);
      }),
    );
  });

  test('grows by the size of each event', () => {
    fc.assert(
      fc.property(headerInBothForms, int64, fields, ({ header }, watchId, it) => {
        const without = encodeWatchResponse(header, watchId, { ...it, events: [] }).length;
        const events = it.events.reduce((size, event) => size + watchEventSize(event, it.withPrevKv), 0);
        expect(encodeWatchResponse(header, watchId, it).length).toBe(without + events);
      }),
    );
  });
});
