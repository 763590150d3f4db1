import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { withTemporaryFolder } from '@tenure/test-support';
import * as grpc from '@grpc/grpc-js';
import { rpcMethods } from '@tenure/protocol';
import { expect, test } from 'vitest';
import { parseServerConfig } from './config/parse-server-config.ts';
import type { ServerConfig } from './config/server-config.ts';
import { logStart } from './engines/chain-hash.ts';
import { openFileEngine } from './engines/file/file-engine.ts';
import { restoreSnapshot } from './operator/snapshot-restore.ts';
import { snapshotOfLog } from './operator/snapshot-save.ts';
import { decodeCommand } from './replica/command-codec.ts';
import { recover } from './replica/recovery.ts';
import { writeSnapshotFile } from './replica/snapshot-file.ts';
import { serve } from './serve.ts';
import { systemClock } from './time/system-clock.ts';

const pages = ['/health', '/version', '/metrics', '/livez?verbose', '/readyz?verbose', '/v3/kv/range', '/no/page'];
/** These wait for another client, or never end. */
const waitingMethods = /\/(?:Watch|Observe|Lock|Campaign)$/;
/** How long the test listens to a call that may wait. */
const listenMs = 100;

function configOf(dataDir: string): ServerConfig {
  const argv = ['--data-dir', dataDir, '--listen-client-urls', 'http://127.0.0.1:0', '--log-level', 'debug'];
  const outcome = parseServerConfig({ argv: [...argv, '--snapshot-count', '1'], env: {} });
  if (outcome.kind !== 'config') throw new Error(JSON.stringify(outcome));
  return outcome.config;
}

/** Everything that a client receives when it calls `path` with an empty request, with errors and trailers. */
function answerTo(client: grpc.Client, path: string): Promise<Buffer> {
  const pass = (bytes: Buffer): Buffer => bytes;
  const call = client.makeBidiStreamRequest(path, pass, pass);
  const heard: Buffer[] = [];
  return new Promise((resolve) => {
    call.on('data', (bytes: Buffer) => heard.push(bytes));
    call.on('error', () => undefined);
    call.on('status', ({ details, metadata }: grpc.StatusObject) => {
      heard.push(Buffer.from(`${details} ${JSON.stringify(metadata.getMap())}`));
      resolve(Buffer.concat(heard));
    });
    call.end(Buffer.alloc(0));
    if (waitingMethods.test(path)) void delay(listenMs).then(() => call.cancel());
  });
}

async function secretOf(dataDir: string): Promise<string> {
  const engine = await openFileEngine({ folder: dataDir });
  try {
    return (await recover(engine, decodeCommand, systemClock)).state.secret;
  } finally {
    await engine.close();
  }
}

async function bytesOf(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

test('no reply, log line or saved snapshot contains the secret of the cluster', async () => {
  await withTemporaryFolder(async (folder) => {
    const dataDir = join(folder, 'data');
    const shown: Buffer[] = [];
    const server = await serve(configOf(dataDir), { stderr: { write: (line) => shown.push(Buffer.from(line)) } });
    const [url] = server.urls as [string];
    const client = new grpc.Client(url.replace('http://', ''), grpc.credentials.createInsecure());
    const answers = [...rpcMethods.values()].map(({ path }) => answerTo(client, path));
    for (const answer of answers) shown.push(await answer);
    for (const page of pages) shown.push(Buffer.from(await (await fetch(url + page)).arrayBuffer()));
    client.close();
    await server.close();
    shown.push(await bytesOf(snapshotOfLog({ kind: 'folder', dataDir })));

    const secret = await secretOf(dataDir);
    expect(secret).toHaveLength(43);
    // The replies include the snapshot of the state, which begins with these bytes.
    expect(shown.filter((bytes) => bytes.includes('TENURE\r\n'))).toHaveLength(2);
    const forms = [secret, Buffer.from(secret, 'base64url').toString('hex'), Buffer.from(secret).toString('base64')];
    for (const bytes of shown) for (const form of forms) expect(bytes.includes(form), bytes.toString()).toBe(false);
  });
});

test('a snapshot of an older version, which contains the secret, is restored with a new secret', async () => {
  await withTemporaryFolder(async (folder) => {
    const dataDir = join(folder, 'data');
    const server = await serve(configOf(dataDir), { stderr: { write: () => undefined } });
    await server.close();
    const engine = await openFileEngine({ folder: dataDir });
    const { state, position } = await recover(engine, decodeCommand, systemClock);
    await engine.close();
    expect(position).not.toEqual(logStart);
    const { clusterId, currentRevision: revision, secret } = state;
    const head = { format: 1, position, revision, clusterId: `${clusterId}`, tenureVersion: '0.1.0' } as const;
    async function* chunks(): AsyncGenerator<Uint8Array> {
      yield* state.snapshotForEngine();
    }
    const old = await bytesOf(writeSnapshotFile(head, chunks()));
    expect(old.includes(secret)).toBe(true);
    const file = join(folder, 'old.snapshot');
    writeFileSync(file, old);
    const restored = join(folder, 'restored');
    await restoreSnapshot(file, { kind: 'folder', dataDir: restored });
    const another = await secretOf(restored);
    expect(another).toHaveLength(43);
    expect(another).not.toBe(secret);
  });
});
