import * as grpc from '@grpc/grpc-js';
import { etcdserverpb } from '@tenure/protocol';
import { decodeMessage, encodeFramed, encodePutRequest, encodeTxnRequest, frameHeadroomBytes } from '@tenure/codec';
import { afterEach, expect, test, vi } from 'vitest';
import { parseServerConfig } from './config/parse-server-config.ts';
import { serve } from './serve.ts';
import type { RunningServer } from './server-options.ts';

const quotaBytes = 2 * 1024 * 1024;
/** Values of this size make a full server have few revisions: compaction halves the history every second. */
const keysAtOnce = 3_000;
const patience = { timeout: 20_000, interval: 100 };
let server: RunningServer | undefined;
let client: grpc.Client | undefined;
afterEach(async () => {
  client?.close();
  await server?.close();
});

async function start(): Promise<void> {
  const argv = [
    '--engine',
    'memory',
    '--listen-client-urls',
    'http://127.0.0.1:0',
    '--max-txn-ops',
    String(keysAtOnce),
  ];
  const outcome = parseServerConfig({ argv: [...argv, '--quota-backend-bytes', String(quotaBytes)], env: {} });
  if (outcome.kind !== 'config') throw new Error(JSON.stringify(outcome));
  server = await serve(outcome.config, { stderr: { write: () => undefined } });
  client = new grpc.Client(server.urls[0]!.replace('http://', ''), grpc.credentials.createInsecure());
}

function call(path: string, framed: Buffer): Promise<Buffer> {
  const pass = (bytes: Buffer): Buffer => bytes;
  return new Promise((resolve, reject) => {
    client!.makeUnaryRequest(path, pass, pass, framed.subarray(frameHeadroomBytes), (error, reply) => {
      if (error === null) resolve(reply ?? Buffer.alloc(0));
      else reject(error);
    });
  });
}

function put(key: string, bytes: number): Promise<Buffer> {
  const value = 'x'.repeat(bytes);
  const request = { key, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
  return call('/etcdserverpb.KV/Put', encodePutRequest(request));
}

async function alarms(): Promise<number> {
  const reply = await call('/etcdserverpb.Maintenance/Alarm', encodeFramed(etcdserverpb.AlarmRequestSchema, {}));
  return decodeMessage(etcdserverpb.AlarmResponseSchema, reply).alarms.length;
}

const full = { details: 'etcdserver: mvcc: database space exceeded' };

/** Overwrites one key, faster than the server compacts, until the server accepts no more. */
async function fill(): Promise<void> {
  await expect(
    (async () => {
      for (;;) await put('k', 64 * 1024);
    })(),
  ).rejects.toMatchObject(full);
  expect(await alarms()).toBe(1);
}

test('a full server accepts writes again by itself', async () => {
  await start();
  await fill();
  await vi.waitFor(() => put('k', 64 * 1024), patience);
  expect(await alarms()).toBe(0);
});

/** Writes keys without values until the server accepts no more. */
async function fillWithKeys(lease: bigint): Promise<void> {
  const flags = { prevKv: false, ignoreValue: false, ignoreLease: false };
  await expect(
    (async () => {
      for (let first = 0; ; first += keysAtOnce) {
        const keys = Array.from({ length: keysAtOnce }, (_, at) => `lock/${first + at}`);
        const success = keys.map((key) => ({ kind: 'put' as const, put: { key, value: '', lease, ...flags } }));
        await call('/etcdserverpb.KV/Txn', encodeTxnRequest({ compare: [], success, failure: [] }));
      }
    })(),
  ).rejects.toMatchObject(full);
}

const everything = Buffer.from([0]);
const lease = 7n;
const deleteAll = encodeFramed(etcdserverpb.DeleteRangeRequestSchema, { key: everything, rangeEnd: everything });
const revoke = encodeFramed(etcdserverpb.LeaseRevokeRequestSchema, { ID: lease });

// A tombstone takes nearly as much space as a key without a value, and those at the compact revision are kept.
test.each([
  ['the deletion of all keys', 2, 0n, '/etcdserverpb.KV/DeleteRange', deleteAll],
  ['the revocation of the lease that holds all keys', 1, lease, '/etcdserverpb.Lease/LeaseRevoke', revoke],
])('a full server accepts writes again by itself after %s', async (_what, rounds, holder, path, request) => {
  await start();
  const grant = encodeFramed(etcdserverpb.LeaseGrantRequestSchema, { ID: lease, TTL: 3600n });
  // The second round starts with what the first round left.
  for (let round = 0; round < rounds; round += 1) {
    if (holder !== 0n) await call('/etcdserverpb.Lease/LeaseGrant', grant);
    await fillWithKeys(holder);
    await call(path, request);
    await vi.waitFor(() => put('k', 64 * 1024), patience);
    // There is space for more than one write.
    for (let write = 0; write < 4; write += 1) await put('k', 64 * 1024);
    expect(await alarms()).toBe(0);
  }
});
