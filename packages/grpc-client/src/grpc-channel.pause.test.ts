import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { GrpcCode } from './grpc-call-error.ts';
import { channelTo, endAll, endings, http2Server, silenceable } from './testing/channel-servers.ts';

afterEach(endAll);

/** In a process of its own, because it must answer while the process of the client stands still. */
const serverCode = `
  const server = require('node:http2').createServer();
  server.on('stream', (stream) => stream.on('error', () => {}));
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
  process.stdin.on('end', () => process.exit()).resume();
`;

async function serverInOtherProcess(): Promise<string> {
  const server = spawn(process.execPath, ['-e', serverCode], { stdio: ['pipe', 'pipe', 'inherit'] });
  endings.push(async () => {
    server.stdin.end();
    if (server.exitCode === null) await once(server, 'exit');
  });
  const [port] = (await once(server.stdout, 'data')) as [Buffer];
  return `127.0.0.1:${port.toString().trim()}`;
}

const intervalMs = 20;
const timeoutMs = 100;

interface OpenCall {
  readonly failure: () => unknown;
}

/** PINGs are sent only while there is one. */
async function openCall(address: string): Promise<OpenCall> {
  const channel = channelTo(address, { intervalMs, timeoutMs });
  expect(await channel.connect(10_000)).toBe(true);
  const call = channel.stream('/t/Never');
  let failure: unknown;
  call.on('error', (error) => (failure = error));
  return { failure: () => failure };
}

/** Pauses this process again and again, each time until the timer for an answer is due before the socket is read. */
async function pauses(parts: number, isOver: () => boolean): Promise<void> {
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  for (let count = 0; count < 20 && !isOver(); count += 1) {
    Atomics.wait(nothing, 0, 0, parts * timeoutMs);
    await nextTurn();
  }
}

test('an answer that waits in the socket after a pause of this process counts', async () => {
  const { failure } = await openCall(await serverInOtherProcess());
  await pauses(1.1, () => failure() !== undefined);
  expect(failure()).toBeUndefined();
});

test('a server that was paused with this process, as with its machine, gets the time to answer again', async () => {
  const { failure } = await openCall(await http2Server(() => {}));
  await pauses(2, () => failure() !== undefined);
  expect(failure()).toBeUndefined();
});

test('a server that is silent also after a pause of this process is given up', async () => {
  const { proxied, silence } = await silenceable(await http2Server(() => {}));
  const { failure } = await openCall(proxied);
  silence();
  await pauses(2, () => failure() !== undefined);
  expect(failure()).toMatchObject({ code: GrpcCode.unavailable });
});
