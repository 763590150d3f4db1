import { create, type fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  expectSameBytes,
  readsWhatTheGeneratedReads,
  refusesExactlyWhatIsInvalid,
} from './testing/codec-properties.ts';
import { clamp } from './testing/generated-requests.ts';
import { headerInBothForms } from './testing/headers.ts';
import { int64, safeInteger, text } from './testing/shape-arbitraries.ts';
import { frameHeadroomBytes } from './frame.ts';
import {
  decodeLeaseGrantRequest,
  decodeLeaseKeepAliveRequest,
  decodeLeaseRevokeRequest,
  decodeLeaseTimeToLiveRequest,
  encodeLeaseGrantRequest,
  encodeLeaseGrantResponse,
  encodeLeaseKeepAliveRequest,
  encodeLeaseKeepAliveResponse,
  leaseListReply,
  type ListedLease,
  timeToLiveReplyList,
} from './lease.ts';
import { encodeList } from './sliced-reply.ts';
import { etcdserverpb } from '@tenure/protocol';

const {
  LeaseGrantRequestSchema,
  LeaseGrantResponseSchema,
  LeaseKeepAliveRequestSchema,
  LeaseKeepAliveResponseSchema,
  LeaseLeasesResponseSchema,
  LeaseRevokeRequestSchema,
  LeaseTimeToLiveRequestSchema,
  LeaseTimeToLiveResponseSchema,
} = etcdserverpb;

const ttlMs = fc.oneof(fc.nat(5000), fc.integer({ min: 0, max: 9_000_000_000_000 }));

describe('a lease grant', () => {
  test('is written as the generated codec writes it, and read back', () => {
    const request = fc.record({ id: int64, ttlSeconds: safeInteger, ttlMs: safeInteger, label: text });
    fc.assert(
      fc.property(request, (grant) => {
        const framed = encodeLeaseGrantRequest(grant);
        const message = create(LeaseGrantRequestSchema, {
          ID: grant.id,
          TTL: BigInt(grant.ttlSeconds),
          TTLMs: BigInt(grant.ttlMs),
          label: grant.label,
        });
        expectSameBytes(framed, LeaseGrantRequestSchema, message);
        expect(decodeLeaseGrantRequest(framed.subarray(frameHeadroomBytes))).toEqual(grant);
      }),
    );
  });

  const codec = {
    schema: LeaseGrantRequestSchema,
    decode: decodeLeaseGrantRequest,
    shape: (it: ReturnType<typeof fromBinary<typeof LeaseGrantRequestSchema>>) => ({
      id: it.ID,
      ttlSeconds: clamp(it.TTL),
      ttlMs: clamp(it.TTLMs),
      label: it.label,
    }),
  };
  test('is read as the generated codec reads it', () => readsWhatTheGeneratedReads(codec));
  test('is refused exactly when it is no message', () => refusesExactlyWhatIsInvalid(codec));

  test('is answered in milliseconds, and in seconds rounded up', () => {
    fc.assert(
      fc.property(headerInBothForms, int64, ttlMs, fc.boolean(), ({ header, message }, id, granted, ttlRaised) => {
        const framed = encodeLeaseGrantResponse(header, { id, ttlMs: granted, ttlRaised });
        const TTL = BigInt(Math.ceil(granted / 1000));
        const expected = { header: message, ID: id, TTL, TTLMs: BigInt(granted), ttlRaised };
        expectSameBytes(framed, LeaseGrantResponseSchema, create(LeaseGrantResponseSchema, expected));
      }),
    );
  });
});

describe('a keep-alive', () => {
  test('is written as the generated codec writes it, and read back', () => {
    fc.assert(
      fc.property(int64, (id) => {
        const framed = encodeLeaseKeepAliveRequest(id);
        expectSameBytes(framed, LeaseKeepAliveRequestSchema, create(LeaseKeepAliveRequestSchema, { ID: id }));
        expect(decodeLeaseKeepAliveRequest(framed.subarray(frameHeadroomBytes))).toBe(id);
      }),
    );
  });

  test('is answered in milliseconds, and in seconds rounded up, so that a lease that lives never seems gone', () => {
    fc.assert(
      fc.property(headerInBothForms, int64, ttlMs, ({ header, message }, id, remaining) => {
        const framed = encodeLeaseKeepAliveResponse(header, { id, ttlMs: remaining });
        const ttlSeconds = Math.ceil(remaining / 1000);
        const expected = { header: message, ID: id, TTL: BigInt(ttlSeconds), TTLMs: BigInt(remaining) };
        expectSameBytes(framed, LeaseKeepAliveResponseSchema, create(LeaseKeepAliveResponseSchema, expected));
        expect(ttlSeconds > 0).toBe(remaining > 0);
      }),
    );
  });
});

describe('lists of leases and of their keys', () => {
  const listed: fc.Arbitrary<ListedLease> = fc.record({
    id: int64,
    remainingMs: ttlMs,
    grantedMs: ttlMs,
    label: text,
  });

  test('are written as the generated codec writes them', () => {
    fc.assert(
      fc.property(headerInBothForms, fc.array(listed), ({ header, message }, leases) => {
        const expected = create(LeaseLeasesResponseSchema, {
          header: message,
          leases: leases.map(({ id, remainingMs, grantedMs, label }) => {
            return { ID: id, TTLMs: BigInt(remainingMs), grantedTTLMs: BigInt(grantedMs), label: label };
          }),
        });
        const places = leases.map((_, place) => place);
        const framed = encodeList(leaseListReply(header, places, (place) => leases[place]!));
        expectSameBytes(framed, LeaseLeasesResponseSchema, expected);
      }),
    );
  });

  test('have the remaining TTL of one lease, also when it does not exist', () => {
    const keys = fc.array(fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('latin1')));
    fc.assert(
      fc.property(
        headerInBothForms,
        listed,
        fc.integer({ min: -1 }),
        keys,
        ({ header, message }, lease, ttl, names) => {
          const { id, grantedMs, label } = lease;
          const framed = encodeList(
            timeToLiveReplyList(header, { id, ttlSeconds: ttl, ttlMs: ttl, grantedMs, label }, names),
          );
          const expected = create(LeaseTimeToLiveResponseSchema, {
            header: message,
            ID: id,
            TTL: BigInt(ttl),
            TTLMs: BigInt(ttl),
            grantedTTL: BigInt(Math.ceil(grantedMs / 1000)),
            grantedTTLMs: BigInt(grantedMs),
            label: label,
            keys: names.map((name) => Buffer.from(name, 'latin1')),
          });
          expectSameBytes(framed, LeaseTimeToLiveResponseSchema, expected);
        },
      ),
    );
  });
});

describe('requests that name a lease', () => {
  const keepAlive = {
    schema: LeaseKeepAliveRequestSchema,
    decode: decodeLeaseKeepAliveRequest,
    shape: (it: { ID: bigint }) => it.ID,
  };
  const revoke = { ...keepAlive, schema: LeaseRevokeRequestSchema, decode: decodeLeaseRevokeRequest };
  const timeToLive = {
    schema: LeaseTimeToLiveRequestSchema,
    decode: decodeLeaseTimeToLiveRequest,
    shape: (it: ReturnType<typeof fromBinary<typeof LeaseTimeToLiveRequestSchema>>) => ({ id: it.ID, keys: it.keys }),
  };

  test('are read as the generated codec reads them', () => {
    readsWhatTheGeneratedReads(keepAlive);
    readsWhatTheGeneratedReads(revoke);
    readsWhatTheGeneratedReads(timeToLive);
  });

  test('are refused exactly when they are no messages', () => {
    refusesExactlyWhatIsInvalid(keepAlive);
    refusesExactlyWhatIsInvalid(revoke);
    refusesExactlyWhatIsInvalid(timeToLive);
  });
});
