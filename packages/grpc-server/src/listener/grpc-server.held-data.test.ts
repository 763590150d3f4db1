import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  dataFrame,
  deferred,
  frameMessage,
  openFrame,
  FrameClient,
  startTestServer,
  type TestServer,
  windowUpdate,
} from '@tenure/test-support';
import { afterEach, describe, expect, test } from 'vitest';
import { GrpcCode, GrpcStatus } from '../calls/grpc-status.ts';
import type { DuplexCall } from '../calls/call.ts';
import type { TransportLimits } from '../limits/transport-limits.ts';

const patience = { timeout: 20_000, interval: 50 };
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface PausedServer extends TestServer {
  /** The calls that have begun: each is paused. */
  readonly calls: DuplexCall[];
  readonly messages: Buffer[];
}

async function servePaused(limits: Partial<TransportLimits> = {}): Promise<PausedServer> {
  const calls: DuplexCall[] = [];
  const messages: Buffer[] = [];
  const server = await startTestServer(
    {
      '/t.T/Paused': {
        kind: 'bidi',
        handle: (call) => {
          calls.push(call);
          call.onMessage = (message) => messages.push(Buffer.from(message));
          call.onHalfClose = () => call.end(new GrpcStatus(GrpcCode.ok, ''));
          call.pause();
        },
      },
    },
    limits,
  );
  cleanups.push(() => server.transport.close({ graceMs: 0 }));
  return { ...server, calls, messages };
}

function attack(port: number): FrameClient {
  const client = new FrameClient(port).open();
  cleanups.push(() => client.destroy());
  return client;
}

/** The bytes in DATA frames of one byte each. */
function tinyFrames(streamId: number, bytes: Buffer): Buffer {
  const frames = Buffer.alloc(10 * bytes.length);
  const frame = dataFrame(streamId, Buffer.alloc(1));
  bytes.forEach((byte, at) => {
    frame.copy(frames, 10 * at);
    frames[10 * at + 9] = byte;
  });
  return frames;
}

describe('a client that sends tiny DATA frames to a paused call', () => {
  const sent = Array.from({ length: 600 }, (_, at) => Buffer.alloc(100, at));
  const stream = Buffer.concat(sent.map((message) => frameMessage(message)));

  test('has its messages delivered when the call resumes', async () => {
    const { port, calls, messages, transport } = await servePaused();
    const client = attack(port);
    client.send(openFrame(1, '/t.T/Paused'), tinyFrames(1, stream));
    await client.settled();
    expect(messages).toEqual([]);
    calls[0]?.resume();
    expect(messages).toEqual(sent);
    client.send(dataFrame(1, Buffer.alloc(0), 1));
    await client.next(1, 1);
    expect(transport.calls).toBe(0);
  });

  test('does not make it deliver what comes after the next pause', async () => {
    const { port, calls, messages } = await servePaused();
    const client = attack(port);
    client.send(openFrame(1, '/t.T/Paused'), tinyFrames(1, stream));
    await client.settled();
    const [call] = calls;
    const ended = deferred();
    if (call === undefined) throw new Error('no call has begun');
    call.onMessage = (message) => {
      messages.push(Buffer.from(message));
      if (messages.length === sent.length) ended.resolve();
      if (messages.length % 7 > 0) return;
      call.pause();
      setImmediate(() => call.resume());
    };
    call.resume();
    expect(messages).toEqual(sent.slice(0, 7));
    await ended.promise;
    expect(messages).toEqual(sent);
  });

  test('gets no more memory for them than their bytes', async () => {
    const { port } = await servePaused();
    const client = attack(port);
    const streams = 40;
    const bytes = Buffer.alloc(60_000);
    await client.settled();
    const before = memoryBytes();
    for (let at = 0; at < streams; at += 1) {
      client.send(openFrame(2 * at + 1, '/t.T/Paused'), tinyFrames(2 * at + 1, bytes));
      await client.settled();
    }
    // What is held stays; the memory of chunks that were read is freed when the collector gets to it.
    await expect.poll(() => memoryBytes() - before, patience).toBeLessThan(4 * streams * bytes.length);
  });
});

test('many small messages that wait for a client take little more memory than their bytes', async () => {
  const calls: DuplexCall[] = [];
  const server = await startTestServer({ '/t.T/Talk': { kind: 'bidi', handle: (call) => void calls.push(call) } });
  cleanups.push(() => server.transport.close({ graceMs: 0 }));
  const client = new FrameClient(server.port).open([4, 0]);
  cleanups.push(() => client.destroy());
  client.send(openFrame(1, '/t.T/Talk'));
  await client.settled();
  const [call] = calls;
  if (call === undefined) throw new Error('no call has begun');
  const messages = 100_000;
  const before = memoryBytes();
  for (let at = 0; at < messages; at += 1) call.send(Buffer.from([0, 0, 0, 0, 0, at % 251]));
  expect(call.bufferedBytes).toBe(6 * messages);
  await expect.poll(() => memoryBytes() - before, patience).toBeLessThan(4 * 6 * messages);
  client.send(windowUpdate(0, 2 ** 30), windowUpdate(1, 2 ** 30));
  let body: Buffer = Buffer.alloc(0);
  while (body.length < 6 * messages) {
    const { payload } = await client.next(0, 1);
    body = Buffer.concat([body, payload]);
  }
  for (let at = 0; at < messages; at += 1) {
    if (body[6 * at + 5] !== at % 251) expect.fail(`message ${at} is another one`);
  }
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function memoryBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
