import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { tenureLog } from '@tenure/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DecodeError } from './decode-error.ts';
import { decodeLoggedGrant, encodeLoggedGrant } from './logged-grant.ts';
import { int64, safeInteger, text } from './testing/shape-arbitraries.ts';

const schema = tenureLog.LeaseGrantSchema;

describe('a grant in the log', () => {
  test('is written as the generated codec writes it, and read back', () => {
    fc.assert(
      fc.property(fc.record({ id: int64, ttlMs: safeInteger, label: text }), (grant) => {
        const bytes = encodeLoggedGrant(grant);
        const message = create(schema, { ...grant, ttlMs: BigInt(grant.ttlMs) });
        expect(bytes).toEqual(Buffer.from(toBinary(schema, message)));
        expect(decodeLoggedGrant(bytes)).toEqual(grant);
      }),
    );
  });

  test('of a TTL that could not be read again is not written', () => {
    for (const ttlMs of [2 ** 53, 2 ** 63 * 1000, Infinity, Number.NaN, 0.5]) {
      expect(() => encodeLoggedGrant({ id: 7n, ttlMs, label: '' })).toThrow(RangeError);
    }
  });

  test('is read with unknown fields beside it', () => {
    const bytes = Buffer.concat([encodeLoggedGrant({ id: 7n, ttlMs: 250, label: 'a' }), Buffer.from([0x38, 1])]);
    expect(decodeLoggedGrant(bytes)).toEqual({ id: 7n, ttlMs: 250, label: 'a' });
  });

  test('that was cut, or whose fields have other types, is refused or reads as the generated codec reads it', () => {
    const whole = encodeLoggedGrant({ id: -9n, ttlMs: 300_000, label: 'worker' });
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
        for (const bytes of [whole.subarray(0, at), Buffer.from(whole).fill(byte, at, at + 1)]) {
          try {
            const { id, ttlMs, label } = decodeLoggedGrant(bytes);
            const read = fromBinary(schema, bytes);
            expect({ id, label }).toEqual({ id: read.id, label: read.label });
            expect(ttlMs).toBe(clamped(read.ttlMs));
          } catch (error) {
            expect(error).toBeInstanceOf(DecodeError);
          }
        }
      }),
    );
  });
});

function clamped(value: bigint): number {
  return Math.min(Math.max(Number(value), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
}
