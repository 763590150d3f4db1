import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readsWhatTheGeneratedReads, refusesExactlyWhatIsInvalid } from './testing/codec-properties.ts';
import { watchShape } from './testing/generated-requests.ts';
import { int64 } from './testing/shape-arbitraries.ts';
import { decodeWatchRequest, type WatchRequest } from './watch-request.ts';
import { etcdserverpb } from '@tenure/protocol';

const { WatchRequestSchema } = etcdserverpb;

const codec = { schema: WatchRequestSchema, decode: decodeWatchRequest, shape: watchShape };

const anyBytes = fc.uint8Array({ maxLength: 200 });

/** What clients send: the generated messages, with every option. */
const requestUnion = fc.oneof(
  fc.record({
    case: fc.constant('createRequest' as const),
    value: fc.record({
      key: anyBytes,
      rangeEnd: anyBytes,
      startRevision: int64,
      progressNotify: fc.boolean(),
      filters: fc.array(fc.oneof(fc.nat(2), fc.integer())),
      prevKv: fc.boolean(),
      watchId: int64,
      fragment: fc.boolean(),
    }),
  }),
  fc.record({ case: fc.constant('cancelRequest' as const), value: fc.record({ watchId: int64 }) }),
  fc.record({ case: fc.constant('progressRequest' as const), value: fc.constant({}) }),
);

function decoded(...bytes: readonly number[]): WatchRequest {
  return decodeWatchRequest(Buffer.from(bytes));
}

describe('a watch request', () => {
  test('is read as a client writes it', () => {
    fc.assert(
      fc.property(requestUnion, (it) => {
        const message = create(WatchRequestSchema, { requestUnion: it as etcdserverpb.WatchRequest['requestUnion'] });
        expect(decodeWatchRequest(Buffer.from(toBinary(WatchRequestSchema, message)))).toEqual(watchShape(message));
      }),
    );
  });

  test('is read as the generated codec reads it', () => readsWhatTheGeneratedReads(codec));

  test('is refused exactly when it is no message', () => refusesExactlyWhatIsInvalid(codec));

  test('merges with a second one of its kind, and is replaced by one of another kind', () => {
    const key = [0x0a, 0x03, 0x0a, 0x01, 0x61];
    const prevKv = [0x0a, 0x02, 0x30, 0x01];
    const cancel = [0x12, 0x02, 0x08, 0x07];
    expect(decoded(...key, ...prevKv)).toMatchObject({ kind: 'create', create: { key: 'a', prevKv: true } });
    expect(decoded(...key, ...cancel, ...prevKv)).toMatchObject({ kind: 'create', create: { key: '', prevKv: true } });
    expect(decoded(...key, ...cancel, 0x12, 0x00)).toEqual({ kind: 'cancel', watchId: 7n });
    expect(decoded(...key, 0x1a, 0x00)).toEqual({ kind: 'progress' });
    expect(decoded()).toEqual({ kind: 'empty' });
  });
});
