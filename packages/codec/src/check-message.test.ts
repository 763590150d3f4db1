import type { DescMessage } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, inject, test } from 'vitest';
import { strictlyValid } from './testing/strict-validity.ts';
import { damagedSoup, wireSoup } from './testing/wire-soup.ts';
import { checkMessage, withNames } from './check-message.ts';
import { DecodeError } from './decode-error.ts';
import { decodePutRequest } from './put.ts';
import { maxTxnDepth } from './txn-depth.ts';
import { etcdserverpb, tenureLog } from '@tenure/protocol';

const {
  AlarmRequestSchema,
  LeaseGrantRequestSchema,
  MemberListRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  TxnRequestSchema,
  WatchRequestSchema,
} = etcdserverpb;
const { CheckpointLeasesSchema, RenewLeasesSchema } = tenureLog;

const runs = { commit: 200, ci: 1_000, soak: 20_000 }[inject('effort')];

const schemas: readonly DescMessage[] = [
  AlarmRequestSchema,
  CheckpointLeasesSchema,
  LeaseGrantRequestSchema,
  MemberListRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  TxnRequestSchema,
  WatchRequestSchema,
];

function refusalOf(schema: DescMessage, bytes: Buffer): DecodeError | undefined {
  try {
    checkMessage(schema, bytes);
    return undefined;
  } catch (error) {
    if (error instanceof DecodeError) return error;
    throw error;
  }
}

describe('the check of a message', () => {
  test.for(schemas.map((schema) => [schema.name, schema] as const))('takes every valid %s', ([, schema]) => {
    fc.assert(
      fc.property(wireSoup(schema), (bytes) => {
        expect(refusalOf(schema, bytes)).toBeUndefined();
      }),
      { numRuns: runs },
    );
  });

  test.for(schemas.map((schema) => [schema.name, schema] as const))(
    'refuses exactly the bytes that are not a %s',
    ([, schema]) => {
      fc.assert(
        fc.property(damagedSoup(schema), (bytes) => {
          expect(refusalOf(schema, bytes) === undefined).toBe(strictlyValid(schema, bytes));
        }),
        { numRuns: runs },
      );
    },
  );

  test('takes numbers of a list one by one and packed, and nothing else', () => {
    const filters = (...bytes: number[]): Buffer => Buffer.from([0x0a, bytes.length, ...bytes]);
    expect(refusalOf(WatchRequestSchema, filters(0x28, 0x01))).toBeUndefined();
    expect(refusalOf(WatchRequestSchema, filters(0x2a, 0x02, 0x01, 0x00))).toBeUndefined();
    expect(refusalOf(WatchRequestSchema, filters(0x2a, 0x02, 0x01, 0xff))?.code).toBe('Truncated');
    expect(refusalOf(WatchRequestSchema, filters(0x2d, 1, 2, 3, 4))?.message).toBe(
      'proto: wrong wireType = 5 for field Filters',
    );
    expect(refusalOf(RenewLeasesSchema, Buffer.from([0x0a, 0x03, 0x01, 0xff, 0x01]))).toBeUndefined();
  });

  test('ends at a limit, however deep messages lie in each other', () => {
    let bytes = Buffer.alloc(0);
    for (let level = 0; level < 2 * maxTxnDepth; level += 1) {
      const size = Buffer.from([0x80 | (bytes.length & 0x7f), 0x80 | ((bytes.length >> 7) & 0x7f), bytes.length >> 14]);
      bytes = Buffer.concat([Buffer.from([level % 2 === 0 ? 0x12 : 0x22]), size, bytes]);
    }
    expect(refusalOf(TxnRequestSchema, bytes)).toBeUndefined();
  });

  test('adds the names to the error of a hand-written codec', () => {
    const bytes = Buffer.from([0x0a, 0x01, 0x61, 0x10, 0x01]);
    let refused: unknown;
    try {
      decodePutRequest(bytes);
    } catch (error) {
      refused = error;
    }
    if (!(refused instanceof DecodeError)) throw new Error('the bytes were taken');
    expect(withNames(refused, PutRequestSchema, bytes).message).toBe('proto: wrong wireType = 0 for field Value');
    const other = new DecodeError('Truncated');
    expect(withNames(other, PutRequestSchema, bytes)).toBe(other);
  });
});
