import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { ServeProcess } from '@tenure/test-support';
import { afterAll, expect, test } from 'vitest';
import * as grpc from '@grpc/grpc-js';
import { encodePutRequest, frameHeadroomBytes } from '@tenure/codec';
import { ServeSandbox } from './serve-sandbox.ts';

const maxOpenFiles = 400;
const crowdSize = 600;
const puts = 300;
const sandbox = new ServeSandbox();
const crowd: Socket[] = [];
let server: ServeProcess | undefined;

afterAll(async () => {
  for (const socket of crowd) socket.destroy();
  await server?.end('SIGKILL');
  await sandbox.remove();
});

/** Resolves when the server has accepted or rejected the connection. */
async function knock(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  crowd.push(socket);
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
}

function putThrough(client: grpc.Client, key: string): Promise<string> {
  const pass = (bytes: Buffer): Buffer => bytes;
  const put = { key, value: 'x', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
  const request = encodePutRequest(put).subarray(frameHeadroomBytes);
  return new Promise((resolve) => {
    client.makeUnaryRequest('/etcdserverpb.KV/Put', pass, pass, request, (error) => resolve(error?.details ?? 'ok'));
  });
}

test('many idle connections leave enough files for the log, even with a low limit', async () => {
  const limited = ['sh', '-c', `ulimit -n ${maxOpenFiles}; exec "$@"`, 'sh'];
  const flags = ['--listen-client-urls', 'http://127.0.0.1:0', '--snapshot-count', '20'];
  server = new ServeProcess(['serve', '--data-dir', join(sandbox.root, 'data'), ...flags], {}, limited);
  const [url = ''] = await server.ready();
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  expect(await putThrough(client, 'first')).toBe('ok');
  await Promise.all(Array.from({ length: crowdSize }, () => knock(Number(new URL(url).port))));
  // Every twentieth put causes a snapshot, for which a file is opened.
  for (let put = 0; put < puts; put += 1) expect(await putThrough(client, `key ${put % 10}`)).toBe('ok');
  client.close();
});
