import { anonymous, type AuthChange, invalidToken, type Requester, StateMachine } from '@tenure/core';
import { encodePutRequest, encodeTxnRequest, frameHeadroomBytes } from '@tenure/codec';
import { etcdserverpb, v3electionpb, v3lockpb } from '@tenure/protocol';
import { create, type DescMessage, toBinary } from '@bufbuild/protobuf';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { VirtualClock, testConnection } from '@tenure/test-support';
import fc from 'fast-check';
import type { Call, MethodHandler } from '../transport/transport.ts';
import { expect, test } from 'vitest';
import { ScriptedCall } from '../watch/testing/scripted-call.ts';
import { AuditGuard } from './audit-guard.ts';
import type { AuditRecord, AuditSink } from './audit-record.ts';
import { auditedKeys, auditedRequest } from './audited-request.ts';
import { statusNamed } from './status-of.ts';
import { maxStrangerRecords, maxUserRecords } from './limited-records.ts';

const ann: Requester = { user: 'ann', authRevision: 4 };
const put = '/etcdserverpb.KV/Put';

const putOf = (key: string): Buffer => {
  const request = { key, value: 'secret', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
  return encodePutRequest(request).subarray(frameHeadroomBytes);
};

/** What is recorded of one call to a handler, made by ann. */
async function recorded(path: string, request: Buffer, handle: () => Buffer): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  const guard = new AuditGuard(
    { record: (record) => records.push(record as AuditRecord) },
    new StateMachine(),
    new VirtualClock(),
  );
  const handler = guard.guardCalls(new Map<string, MethodHandler>([[path, { kind: 'unary', handle }]])).get(path);
  const signal = new AbortController().signal;
  const call: Call = { path, metadata: {}, deadlineMs: Infinity, signal, connection: testConnection(), requester: ann };
  if (handler?.kind === 'unary') await Promise.resolve(handler.handle(request, call)).catch(() => undefined);
  return records;
}

test('a request is recorded with who asked, the keys and the outcome, without values', async () => {
  const about = { method: 'KV/Put', by: 'ann', address: '127.0.0.1', keys: [['é']] };
  const request = putOf(Buffer.from('é').toString('latin1'));
  const refuse = (name: 'PermissionDenied' | 'NoSpace') => (): never => {
    throw statusNamed(name);
  };
  expect(await recorded(put, request, () => Buffer.alloc(0))).toEqual([{ ...about, allowed: true }]);
  expect(await recorded(put, request, refuse('PermissionDenied'))).toEqual([
    { ...about, allowed: false, error: 'etcdserver: permission denied' },
  ]);
  expect(await recorded(put, request, refuse('NoSpace'))).toEqual([
    { ...about, allowed: true, error: 'etcdserver: mvcc: database space exceeded' },
  ]);
});

test('a bug is recorded without its text, and an unreadable request without its keys', async () => {
  const fail = (): never => {
    throw new Error('at /home/me');
  };
  expect(await recorded(put, Buffer.from([0xff]), fail)).toEqual([
    { method: 'KV/Put', by: 'ann', address: '127.0.0.1', allowed: true, error: 'internal error' },
  ]);
});

test('a transaction is recorded with every key of both branches, up to a limit', () => {
  const put128 = Array.from({ length: 20 }, (_, n) => {
    const request = { key: `k${n}`, value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
    return { kind: 'put', put: request } as const;
  });
  const nested = { kind: 'txn', txn: { compare: [], success: [], failure: put128 } } as const;
  const request = encodeTxnRequest({ compare: [], success: [], failure: [nested] }).subarray(frameHeadroomBytes);
  const { keys, moreKeys } = auditedRequest('/etcdserverpb.KV/Txn', request) ?? {};
  expect(keys?.slice(0, 2)).toEqual([['k0'], ['k1']]);
  expect([keys?.length, moreKeys]).toEqual([16, 4]);
});

test('Lock and Election are recorded with the range of their keys, one key, and the lease', () => {
  const about = (path: string, schema: DescMessage, message: Record<string, unknown>): unknown =>
    auditedRequest(path, Buffer.from(toBinary(schema, create(schema, message))));
  const name = Buffer.from('n');
  const [range, leader] = [[['n/', 'n0']], { name, key: Buffer.from('n/a'), rev: 4n, lease: 10n }];
  expect(about('/v3lockpb.Lock/Lock', v3lockpb.LockRequestSchema, { name, lease: 10n })).toEqual({
    keys: range,
    lease: 'a',
  });
  expect(about('/v3lockpb.Lock/Unlock', v3lockpb.UnlockRequestSchema, { key: Buffer.from('n/a') })).toEqual({
    keys: [['n/a']],
  });
  const campaign = { name, value: Buffer.from('secret') };
  expect(about('/v3electionpb.Election/Campaign', v3electionpb.CampaignRequestSchema, campaign)).toEqual({
    keys: range,
  });
  expect(about('/v3electionpb.Election/Resign', v3electionpb.ResignRequestSchema, { leader })).toEqual({
    keys: [['n/a']],
  });
});

test('of a long key or name, which every client may send, only the beginning is recorded', () => {
  const long = 'k'.repeat(1_000_000);
  expect(auditedRequest(put, putOf(long))).toEqual({ keys: [[`${'k'.repeat(256)}... (1000000 bytes)`]] });
  const login = create(etcdserverpb.AuthenticateRequestSchema, { name: long, password: 'hunter2' });
  const bytes = Buffer.from(toBinary(etcdserverpb.AuthenticateRequestSchema, login));
  const user = `${'k'.repeat(256)}... (1000000 bytes)`;
  expect(auditedRequest('/etcdserverpb.Auth/Authenticate', bytes)).toEqual({ user });
});

test('a record stays small, whatever bytes the keys of a request have', () => {
  const byte = fc.constantFrom('\0', '"', 'k', '\xff');
  const key = fc.string({ unit: byte, minLength: 1, maxLength: 300 });
  const range = fc.record({ key, rangeEnd: fc.oneof(fc.constant(''), key) });
  fc.assert(
    fc.property(fc.array(range, { maxLength: 40, size: 'max' }), (ranges) => {
      const { keys = [], moreKeys = 0 } = auditedKeys(ranges);
      expect(keys.length + moreKeys).toBe(ranges.length);
      expect(keys.length).toBeGreaterThanOrEqual(Math.min(1, ranges.length));
      expect(JSON.stringify(keys).length).toBeLessThan(4_200);
    }),
  );
});

test('changes of users and roles are recorded with their names and ranges, and never with a password', () => {
  const add = create(etcdserverpb.AuthUserAddRequestSchema, { name: 'bob', password: 'hunter2' });
  const grant = create(etcdserverpb.AuthRoleGrantPermissionRequestSchema, {
    name: 'r',
    perm: { key: Buffer.from('a'), rangeEnd: Buffer.from('b') },
  });
  const role = create(etcdserverpb.AuthUserGrantRoleRequestSchema, { user: 'bob', role: 'r' });
  const of = (method: string, bytes: Uint8Array): unknown =>
    auditedRequest(`/etcdserverpb.Auth/${method}`, Buffer.from(bytes));
  expect(of('UserAdd', toBinary(etcdserverpb.AuthUserAddRequestSchema, add))).toEqual({ user: 'bob' });
  expect(of('UserGrantRole', toBinary(etcdserverpb.AuthUserGrantRoleRequestSchema, role))).toEqual({
    user: 'bob',
    role: 'r',
  });
  expect(of('RoleGrantPermission', toBinary(etcdserverpb.AuthRoleGrantPermissionRequestSchema, grant))).toEqual({
    role: 'r',
    keys: [['a', 'b']],
  });
});

test('a refused renewal is recorded with its lease, and an accepted one is not', () => {
  const records: AuditRecord[] = [];
  const guard = new AuditGuard(
    { record: (record) => records.push(record as AuditRecord) },
    new StateMachine(),
    new VirtualClock(),
  );
  const path = '/etcdserverpb.Lease/LeaseKeepAlive';
  const renew: MethodHandler = {
    kind: 'bidi',
    handle: (call) => {
      call.onMessage = (message) => {
        if (message.length > 2) call.end(new GrpcStatus(GrpcCode.permissionDenied, 'etcdserver: permission denied'));
      };
    },
  };
  const handler = guard.guardMessages(new Map([[path, renew]])).get(path);
  const call = Object.assign(new ScriptedCall(1_000), { path, requester: ann });
  if (handler?.kind === 'bidi') handler.handle(call);
  call.requestRaw(Buffer.from([8, 1]));
  expect(records).toEqual([]);
  call.requestRaw(Buffer.from([8, 0xff, 1]));
  expect(records).toEqual([
    {
      method: 'Lease/LeaseKeepAlive',
      by: 'ann',
      address: '127.0.0.1',
      lease: 'ff',
      allowed: false,
      error: 'etcdserver: permission denied',
    },
  ]);
});

const setUp: readonly AuthChange[] = [
  { kind: 'addUser', user: 'root', passwordHash: 'x', noPassword: false },
  { kind: 'grantRole', user: 'root', role: 'root' },
];
const authenticate = '/etcdserverpb.Auth/Authenticate';

/** A guard, and calls to it that are refused or not. */
function audited(isAuthEnabled: boolean) {
  const state = new StateMachine();
  for (const change of [...setUp, ...(isAuthEnabled ? [{ kind: 'enable' } as const] : [])]) {
    state.apply({ index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands: [{ kind: 'auth', change }] });
  }
  const records: Parameters<AuditSink['record']>[0][] = [];
  const guard = new AuditGuard({ record: (record) => records.push(record) }, state, new VirtualClock());
  const { signal } = new AbortController();
  const call = async (path: string, requester: Requester, refused?: 'UserEmpty' | 'AuthFailed'): Promise<void> => {
    const handle = (): Buffer => {
      if (refused !== undefined) throw statusNamed(refused);
      return Buffer.alloc(0);
    };
    const handler = guard.guardCalls(new Map<string, MethodHandler>([[path, { kind: 'unary', handle }]])).get(path);
    const made: Call = { path, metadata: {}, deadlineMs: Infinity, signal, connection: testConnection(), requester };
    if (handler?.kind === 'unary') await Promise.resolve(handler.handle(putOf('k'), made)).catch(() => undefined);
  };
  return { guard, records, call };
}

test('strangers fill the log with nothing, and hide no user, no login and no guess of a password', async () => {
  const { guard, records, call } = audited(true);
  for (let round = 0; round < 500; round += 1) {
    await call(put, round % 2 === 0 ? anonymous : invalidToken, 'UserEmpty');
    await call(put, ann);
    await call(authenticate, anonymous);
    await call('/grpc.health.v1.Health/Check', anonymous);
    // It was admitted before authentication was enabled.
    await call('/etcdserverpb.Auth/AuthEnable', anonymous);
  }
  await call(authenticate, anonymous, 'AuthFailed');
  guard.stop();
  const count = (method: string, by: string, isRefused: boolean): number =>
    records.filter((record) => record.method === method && record.by === by && 'error' in record === isRefused).length;
  expect(count('KV/Put', 'ann', false)).toBe(500);
  expect(count('Auth/Authenticate', '', false)).toBe(500);
  expect(count('Auth/Authenticate', '', true)).toBe(1);
  expect(count('Auth/AuthEnable', '', false)).toBe(500);
  expect(count('KV/Put', '', true) + count('health.v1.Health/Check', '', false)).toBe(maxStrangerRecords);
  expect(records.at(-1)).toEqual({ method: '*', by: '', suppressed: 1_000 - maxStrangerRecords });
});

test('a user has so many records a minute, and the others are counted', async () => {
  const { guard, records, call } = audited(true);
  for (let round = 0; round < maxUserRecords + 7; round += 1) await call(put, ann);
  guard.stop();
  expect(records.length).toBe(maxUserRecords + 1);
  expect(records.at(-1)).toEqual({ method: '*', by: 'ann', allowed: true, suppressed: 7 });
});

test('while authentication is disabled, every request is recorded', async () => {
  const { guard, records, call } = audited(false);
  for (let round = 0; round < 500; round += 1) await call(put, anonymous);
  guard.stop();
  expect(records.length).toBe(500);
});
