import * as grpc from '@grpc/grpc-js';
import { decodeMessage, encodeFramed, encodePutRequest, etcdserverpb, frameHeadroomBytes } from '@tenure/protocol';
import { afterEach, expect, test, vi } from 'vitest';
import { parseServerConfig } from './config/parse-server-config.ts';
import { type RunningServer, serve } from './server.ts';

const quotaBytes = 2 * 1024 * 1024;
const patience = { timeout: 20_000, interval: 100 };
let server: RunningServer | undefined;
let client: grpc.Client | undefined;
afterEach(async () => {
  client?.close();
  await server?.close();
});

async function start(): Promise<void> {
  const argv = ['--engine', 'memory', '--listen-client-urls', 'http://127.0.0.1:0'];
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

/** Writes over one key, faster than anybody looks, until the server takes no more. */
async function fill(): Promise<void> {
  const full = { details: 'etcdserver: mvcc: database space exceeded' };
  await expect(
    (async () => {
      for (;;) await put('k', 64 * 1024);
    })(),
  ).rejects.toMatchObject(full);
  expect(await alarms()).toBe(1);
}

test('a server that was filled up takes writes again by itself', async () => {
  await start();
  await fill();
  await vi.waitFor(() => put('k', 64 * 1024), patience);
  expect(await alarms()).toBe(0);
});
