import {
  callFrames,
  dataFrame,
  frameTypes,
  openFrame,
  FrameClient,
  repeat,
  settingsFrame,
  startTestServer,
  type TestServer,
  windowUpdate,
} from '@tenure/test-support';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { clientOptions, createTestTls, secureConnection, type TestTls } from './testing/test-tls.ts';
import { type ClientTls, listenerTls } from './client-tls.ts';
import type { MethodHandler } from './transport.ts';
import type { TransportLimits } from '@tenure/grpc-server';

let testTls: TestTls;
beforeAll(() => {
  testTls = createTestTls();
});
afterAll(() => testTls.close());

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const initialWindowSize = 4;
const messages = 300;
const patience = { timeout: 30_000, interval: 10 };

/** Every size that is copied, referenced, split into frames and into pieces. */
const sizes = [0, 1, 30, 200, 4080, 4091, 4092, 8000, 16_379, 16_384, 30_000];

/** A message whose bytes tell from which call, and which one it is. */
function messageOf(call: number, at: number, headroomBytes: number): Buffer {
  const size = sizes[(call + at) % sizes.length] ?? 0;
  const message = Buffer.alloc(headroomBytes + size, (17 * call + at) % 251);
  if (size >= 30) message.write(`call ${call} message ${at}`, headroomBytes);
  return message;
}

const stream: MethodHandler = {
  kind: 'serverStream',
  handle: async (request, _call, send) => {
    for (let at = 0; at < messages; at += 1) await send(messageOf(request[0] ?? 0, at, 5));
  },
};
const large = 3_000_000;
const routes: Record<string, MethodHandler> = {
  '/t.T/Stream': stream,
  '/t.T/Large': { kind: 'unary', handle: (request) => Buffer.alloc(5 + large, request[0]) },
  '/t.T/Talk': {
    kind: 'bidi',
    handle: (call) => {
      call.onMessage = (request) => {
        for (let at = 0; at < messages; at += 1) call.send(messageOf(request[0] ?? 0, at, 5));
      };
      call.onHalfClose = () => call.end(new GrpcStatus(GrpcCode.ok, ''));
    },
  },
};

async function serve(limits: Partial<TransportLimits> = {}, tls?: ClientTls): Promise<TestServer> {
  const server = await startTestServer(routes, limits, undefined, undefined, tls && listenerTls(tls));
  cleanups.push(() => server.transport.close({ graceMs: 0 }));
  return server;
}

async function open({ port }: TestServer, isSecure = false): Promise<FrameClient> {
  const options = { ...clientOptions(testTls), ALPNProtocols: ['h2'] };
  const socket = isSecure ? await secureConnection(port, options) : undefined;
  const client = new FrameClient(port, socket).open([initialWindowSize, 2 ** 31 - 1]);
  cleanups.push(() => client.destroy());
  client.send(windowUpdate(0, 2 ** 30));
  return client;
}

/** Reads a chunk, and the next one some turns later. */
function readSlowly({ socket }: FrameClient, turns: number): void {
  socket.on('data', () => {
    socket.pause();
    let left = turns;
    const wait = (): void => {
      left -= 1;
      if (left > 0) setImmediate(wait);
      else socket.resume();
    };
    wait();
  });
}

function bodyOf(client: FrameClient, streamId: number): Buffer {
  const frames = client.frames.filter((frame) => frame.type === frameTypes.data && frame.streamId === streamId);
  return Buffer.concat(frames.map(({ payload }) => payload));
}

function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

const expectedStream = (call: number): Buffer =>
  Buffer.concat(Array.from({ length: messages }, (_, at) => framed(messageOf(call, at, 0))));

async function expectNothingHeld({ transport }: TestServer): Promise<void> {
  await vi.waitFor(() => expect(transport.connections).toBe(0), patience);
  expect(transport.calls).toBe(0);
  expect(transport.replyBytes).toBe(0);
}

const paths = ['/t.T/Stream', '/t.T/Talk', '/t.T/Large'];

/** Six calls on one connection; resolves when all of them have ended. */
async function callAll(client: FrameClient, first: number): Promise<void> {
  const calls = [0, 1, 2, 3, 4, 5];
  const ends = calls.map(async (at) => {
    await client.next(frameTypes.headers, 2 * at + 1);
    await client.next(frameTypes.headers, 2 * at + 1);
  });
  for (const at of calls) client.send(callFrames(2 * at + 1, paths[at % 3] ?? '', Buffer.from([first + at])));
  await Promise.all(ends);
  for (const at of calls) {
    const call = first + at;
    const expected = at % 3 === 2 ? framed(Buffer.alloc(large, call)) : expectedStream(call);
    expect(bodyOf(client, 2 * at + 1).equals(expected), `the bytes of call ${call}`).toBe(true);
  }
}

describe.each([
  { name: 'without TLS', isSecure: false },
  { name: 'with TLS', isSecure: true },
])('clients that read slowly, $name', ({ isSecure }) => {
  const tls = async (): Promise<ClientTls | undefined> =>
    isSecure ? { credentials: await testTls.open(), namesCaller: false } : undefined;

  test('get every byte, while others read at once or leave in the middle', async () => {
    const server = await serve({}, await tls());
    const slow = [await open(server, isSecure), await open(server, isSecure)];
    slow.forEach((client, at) => readSlowly(client, 3 + 10 * at));
    const quick = [await open(server, isSecure), await open(server, isSecure)];
    const leaving = [await open(server, isSecure), await open(server, isSecure), await open(server, isSecure)];
    const left = leaving.map(async (client, at) => {
      client.send(repeat(6, (call) => callFrames(2 * call + 1, paths[call % 3] ?? '', Buffer.from([call]))));
      for (let frames = 0; frames <= 20 * at; frames += 1) await client.next(frameTypes.data);
      await client.destroy();
    });
    await Promise.all([...[...slow, ...quick].map((client, at) => callAll(client, 10 * at)), ...left]);
    for (const client of [...slow, ...quick]) await client.destroy();
    await expectNothingHeld(server);
  });
});

/** Fills what the system takes for a client that does not read. */
async function block(server: TestServer, client: FrameClient): Promise<void> {
  client.socket.pause();
  client.send(repeat(8, (at) => callFrames(2 * at + 1, '/t.T/Large')));
  await vi.waitFor(() => expect(server.transport.replyBytes).toBeGreaterThan(large), patience);
}

describe('a client that reads nothing', () => {
  test('is disconnected when it floods its connection with SETTINGS', async () => {
    const server = await serve({ maxUnreadControlFrames: 50 });
    const client = await open(server);
    await block(server, client);
    client.send(repeat(60, () => settingsFrame()));
    await expectNothingHeld(server);
    expect(server.logged).toEqual([expect.stringContaining('does not read the answers')]);
  });

  test('is disconnected when it has finished sending', async () => {
    const server = await serve({ sweepIntervalMs: 10, keepAliveTimeoutMs: 50, keepAliveIntervalMs: 50 });
    const client = await open(server);
    await block(server, client);
    client.socket.end();
    await expectNothingHeld(server);
  });

  test('does not hold up the end of the server, nor do others that flood it', async () => {
    const server = await serve();
    const unread = await open(server);
    await block(server, unread);
    const unanswered = await open(server);
    unanswered.send(repeat(500, (at) => openFrame(2 * at + 1, '/t.T/Large')));
    const flooding = await open(server);
    flooding.send(openFrame(1, '/t.T/Talk'));
    const flood = (): void => void flooding.socket.write(dataFrame(1, Buffer.alloc(1)), (error) => error ?? flood());
    flood();
    const streaming = await open(server);
    streaming.send(repeat(20, (at) => callFrames(2 * at + 1, '/t.T/Talk')));
    streaming.socket.pause();
    await unanswered.settled();
    await server.transport.close({ graceMs: 200 });
    await expectNothingHeld(server);
  });
});
