import type { Command, PutRequest, RequestOp } from '@tenure/core';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeCommand, encodeCommand, newestCommandKind } from './command-codec.ts';

const id = fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n);
const unsignedId = fc.bigInt(0n, 2n ** 64n - 1n);
const whole = fc.maxSafeNat();
const bytes = fc.uint8Array({ maxLength: 40 }).map((raw) => Buffer.from(raw).toString('latin1'));
const put: fc.Arbitrary<PutRequest> = fc.record({
  key: bytes,
  value: bytes,
  lease: id,
  prevKv: fc.boolean(),
  ignoreValue: fc.boolean(),
  ignoreLease: fc.boolean(),
});
const deleteRange = fc.record({ key: bytes, rangeEnd: bytes, prevKv: fc.boolean() });
const op: fc.Arbitrary<RequestOp> = fc.oneof(
  put.map((each): RequestOp => ({ kind: 'put', put: each })),
  deleteRange.map((each): RequestOp => ({ kind: 'deleteRange', deleteRange: each })),
);
const urls = fc.array(fc.webUrl(), { maxLength: 3 });
const plainMember = fc.record({ id: unsignedId, name: fc.string(), clientUrls: urls });
const member = fc.oneof(
  plainMember,
  fc.record({ id: unsignedId, name: fc.string(), clientUrls: urls, peerUrls: fc.array(fc.webUrl(), { minLength: 1 }) }),
);

const command: fc.Arbitrary<Command> = fc.oneof(
  put.map((each): Command => ({ kind: 'put', put: each })),
  deleteRange.map((each): Command => ({ kind: 'deleteRange', deleteRange: each })),
  fc
    .array(op, { maxLength: 4 })
    .map((success): Command => ({ kind: 'txn', txn: { compare: [], success, failure: [] } })),
  whole.map((revision): Command => ({ kind: 'compact', revision })),
  fc
    .record({ id, ttlMs: whole, label: fc.string({ unit: 'grapheme' }) })
    .map((each): Command => ({ kind: 'leaseGrant', ...each })),
  id.map((each): Command => ({ kind: 'leaseRevoke', id: each })),
  fc.array(fc.record({ id, renewIndex: whole })).map((leases): Command => ({ kind: 'expireLeases', leases })),
  fc
    .array(fc.record({ id, renewIndex: whole, deadlineMs: whole }))
    .map((leases): Command => ({ kind: 'checkpointLeases', leases })),
  fc.array(id).map((ids): Command => ({ kind: 'renewLeases', ids })),
  fc
    .record({ epoch: whole, leader: fc.string(), leaderLeaseMs: whole })
    .map((each): Command => ({ kind: 'claim', ...each })),
  fc.constant<Command>({ kind: 'heartbeat' }),
  fc
    .record({ clusterId: unsignedId, secret: fc.string() })
    .map((each): Command => ({ kind: 'createCluster', ...each })),
  unsignedId.map((target): Command => ({ kind: 'resign', target })),
  unsignedId.map((each): Command => ({ kind: 'removeMember', id: each })),
  member.map((each): Command => ({ kind: 'registerMember', ...each })),
  fc
    .record({
      action: fc.constantFrom('activate' as const, 'deactivate' as const),
      memberId: unsignedId,
      alarm: fc.constantFrom('nospace' as const, 'corrupt' as const),
    })
    .map((each): Command => ({ kind: 'alarm', ...each })),
);

describe('commands in the log', () => {
  test('come back as they were proposed', () => {
    fc.assert(
      fc.property(command, (each) => {
        expect(decodeCommand(encodeCommand(each))).toEqual(each);
      }),
      { numRuns: 500 },
    );
  });

  test('have a kind that earlier versions know, unless a member has peer URLs', () => {
    fc.assert(
      fc.property(plainMember, (each) => {
        const before = encodeCommand({ kind: 'registerMember', ...each });
        expect(before.kind).toBe(13);
        expect(encodeCommand({ kind: 'registerMember', ...each, peerUrls: [] })).toEqual(before);
        const { kind } = encodeCommand({ kind: 'registerMember', ...each, peerUrls: ['http://a:1'] });
        expect([kind, newestCommandKind]).toEqual([20, 20]);
      }),
    );
  });

  test('of an unknown kind stop the server with a message that names the cure', () => {
    expect(() => decodeCommand({ kind: 200, payload: Buffer.alloc(0) })).toThrow(/kind 200.*upgrade this server/);
  });
});
