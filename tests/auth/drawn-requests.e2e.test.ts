import type { MessageInitShape } from '@bufbuild/protobuf';
import type { AuthChange, Command } from '@tenure/core';
import { authpb, etcdserverpb } from '@tenure/protocol';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { Code } from '../../conformance/client/refusal.ts';
import { WatchStream } from '../../conformance/client/watch-stream.ts';
import { keyCommand } from '../../packages/core/src/testing/histories.ts';
import { NaiveAccess } from '../../packages/core/src/testing/naive-access.ts';
import { rangeRequest } from '../../packages/core/src/testing/requests.ts';
import { ClusterMember } from '../cluster/cluster-member.ts';
import { outcomeOf } from './access-client.ts';
import { texts } from './access-judge.ts';
import { AnonymousConnections } from './anonymous-access.ts';
import { RootAccess } from './root-access.ts';

const runs = { commit: 40, ci: 150, soak: 2_000 }[inject('effort')];

type Op = Extract<Command, { kind: 'txn' }>['txn']['success'][number];
type TxnInit = MessageInitShape<typeof etcdserverpb.TxnRequestSchema>;
type OpInit = MessageInitShape<typeof etcdserverpb.RequestOpSchema>;
type Put = Extract<Op, { kind: 'put' }>['put'];
type Range = Extract<Op, { kind: 'range' }>['range'];
type DeleteRange = Extract<Op, { kind: 'deleteRange' }>['deleteRange'];
type Txn = Extract<Op, { kind: 'txn' }>['txn'];

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
const putOf = (put: Put) => ({ ...put, key: bytes(put.key), value: bytes(put.value) });
const deleteOf = (del: DeleteRange) => ({ ...del, key: bytes(del.key), rangeEnd: bytes(del.rangeEnd) });
/** Revisions and sorting are of no interest here, and would be refused before the permission is checked. */
const rangeOf = ({ key, rangeEnd }: Range) => ({ key: bytes(key), rangeEnd: bytes(rangeEnd) });

function opOf(op: Op): OpInit {
  switch (op.kind) {
    case 'put':
      return { request: { case: 'requestPut', value: putOf(op.put) } };
    case 'range':
      return { request: { case: 'requestRange', value: rangeOf(op.range) } };
    case 'deleteRange':
      return { request: { case: 'requestDeleteRange', value: deleteOf(op.deleteRange) } };
    case 'txn':
      return { request: { case: 'requestTxn', value: txnOf(op.txn) } };
    case 'empty':
      return {};
  }
}

function txnOf({ compare, success, failure }: Txn): TxnInit {
  return {
    compare: compare.map(({ key, rangeEnd }) => ({ key: bytes(key), rangeEnd: bytes(rangeEnd) })),
    success: success.map(opOf),
    failure: failure.map(opOf),
  };
}

const range = fc.record({
  key: fc.constantFrom('a', 'ab', 'b', 'c', '\0', 'd', '\xff'),
  rangeEnd: fc.constantFrom('', '', '\0', 'b', 'c', 'd', '\xff'),
});
const granted = fc.tuple(fc.constantFrom('read' as const, 'write' as const, 'readWrite' as const), range);
const asked = fc.oneof(
  { weight: 3, arbitrary: keyCommand },
  { weight: 1, arbitrary: range.map((keys) => ({ kind: 'read' as const, ...keys })) },
  { weight: 1, arbitrary: range.map((keys) => ({ kind: 'watch' as const, ...keys })) },
);
type Asked = Command | { readonly kind: 'read' | 'watch'; readonly key: string; readonly rangeEnd: string };

const typeNumbers = {
  read: authpb.Permission_Type.READ,
  write: authpb.Permission_Type.WRITE,
  readWrite: authpb.Permission_Type.READWRITE,
} as const;

const connections = new AnonymousConnections();
let server: ClusterMember;
let root: RootAccess;
let metadata: { token: string };

beforeAll(async () => {
  let servers: ClusterMember[] = [];
  root = new RootAccess(
    () => servers,
    () => 0,
  );
  server = await ClusterMember.start({ name: 's1', engine: 'memory', metadata: root.metadata });
  servers = [server];
  await root.enable();
  await server.auth.userAdd({ name: 'ann', password: 'of ann' });
  metadata = { token: (await server.auth.authenticate({ name: 'ann', password: 'of ann' })).token };
});

afterAll(async () => {
  connections.close();
  await server?.stop('SIGKILL');
});

/** What a refused request must not change. */
async function content(): Promise<string> {
  const { hash } = await server.maintenance.hashKV({});
  const { leases } = await server.lease.leaseLeases({});
  return `${hash} ${leases.map(({ ID }) => ID).join(' ')}`;
}

async function keysOf(ID: bigint): Promise<string[]> {
  const { keys } = await server.lease.leaseTimeToLive({ ID, keys: true });
  return keys.map((key) => Buffer.from(key).toString('latin1'));
}

async function send(asked: Asked): Promise<{ code: number; details: string }> {
  const { kv, lease, client } = connections.to(server);
  const options = { metadata };
  switch (asked.kind) {
    case 'put':
      return await outcomeOf(kv.put(putOf(asked.put), options));
    case 'deleteRange':
      return await outcomeOf(kv.deleteRange(deleteOf(asked.deleteRange), options));
    case 'txn':
      return await outcomeOf(kv.txn(txnOf(asked.txn), options));
    case 'leaseGrant':
      return await outcomeOf(lease.leaseGrant({ ID: asked.id, TTL: 600n }, options));
    case 'leaseRevoke':
      return await outcomeOf(lease.leaseRevoke({ ID: asked.id }, options));
    case 'read':
      return await outcomeOf(kv.range({ key: bytes(asked.key), rangeEnd: bytes(asked.rangeEnd) }, options));
    case 'watch': {
      const stream = new WatchStream(client, options);
      const { cancelReason } = await stream.create({ key: bytes(asked.key), rangeEnd: bytes(asked.rangeEnd) });
      stream.close();
      return { code: cancelReason === '' ? Code.ok : Code.unknown, details: cancelReason };
    }
    default:
      throw new Error(`${asked.kind} is not drawn`);
  }
}

/** In the words of the model: a watch takes the permission to read. */
function commandOf(asked: Asked): Command {
  if (!('rangeEnd' in asked)) return asked;
  const op = { kind: 'range', range: rangeRequest(asked.key, asked.rangeEnd) } as const;
  return { kind: 'txn', txn: { compare: [], success: [op], failure: [] } };
}

function leasesIn(asked: Asked): bigint[] {
  const inTxn = ({ success, failure }: Txn): bigint[] =>
    [...success, ...failure].flatMap((op) =>
      op.kind === 'put' ? [op.put.lease] : op.kind === 'txn' ? inTxn(op.txn) : [],
    );
  if (asked.kind === 'put') return [asked.put.lease];
  if (asked.kind === 'leaseRevoke') return [asked.id];
  return asked.kind === 'txn' ? inTxn(asked.txn) : [];
}

let run = 0;
let denied = 0;
let allowed = 0;

async function check(
  permissions: readonly (readonly [keyof typeof typeNumbers, { key: string; rangeEnd: string }])[],
  requests: readonly Asked[],
): Promise<void> {
  run += 1;
  const role = `role ${run}`;
  const model = new NaiveAccess();
  const changes: AuthChange[] = [
    { kind: 'addUser', user: 'ann', passwordHash: 'x', noPassword: false },
    { kind: 'addRole', role },
    { kind: 'grantRole', user: 'ann', role },
  ];
  for (const change of changes) model.changed(change);
  await server.auth.roleAdd({ name: role });
  await server.auth.userGrantRole({ user: 'ann', role });
  for (const [type, { key, rangeEnd }] of permissions) {
    const perm = { permType: typeNumbers[type], key: bytes(key), rangeEnd: bytes(rangeEnd) };
    const { code } = await outcomeOf(server.auth.roleGrantPermission({ name: role, perm }));
    if (code === Code.ok) model.changed({ kind: 'grantPermission', role, permission: { type, key, rangeEnd } });
  }
  for (const request of requests) {
    const keys = new Map<bigint, readonly string[]>();
    for (const id of leasesIn(request)) if (id !== 0n) keys.set(id, await keysOf(id));
    const by = { user: 'ann', authRevision: model.revision };
    const expected = model.refusal(commandOf(request), by, (id) => keys.get(id) ?? []);
    const before = await content();
    const { code, details } = await send(request);
    const isDenied = details.endsWith(texts.denied);
    // The request itself is looked at first: a key that is put twice, or a lease that is to be ignored.
    const isInvalid = code === Code.invalidArgument && details !== texts.empty;
    if (!isInvalid) expect(isDenied, `${details}; the model: ${expected ?? 'allowed'}`).toBe(expected !== undefined);
    if (isDenied || isInvalid) expect(await content()).toBe(before);
    if (isDenied) denied += 1;
    if (code === Code.ok) allowed += 1;
  }
  await server.auth.roleDelete({ role });
}

test('requests that are drawn are allowed exactly as a naive model says, and refused ones change nothing', async () => {
  const property = fc.asyncProperty(
    fc.array(granted, { maxLength: 6 }),
    fc.array(asked, { minLength: 4, maxLength: 12 }),
    check,
  );
  await fc.assert(property, { numRuns: runs });
  expect(denied).toBeGreaterThan(runs / 2);
  expect(allowed).toBeGreaterThan(runs / 2);
});
