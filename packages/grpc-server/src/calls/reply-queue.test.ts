import { connect } from 'node:net';
import {
  endHeaders,
  endStream,
  frameMessage,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  http2Preface,
  RawClient,
  settingsFrame,
} from '@tenure/test-support';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { GrpcCode } from './grpc-status.ts';
import { echo, startTestServer, type TestServer } from '@tenure/test-support';
import { UnreadClient } from '@tenure/test-support';
import type { LargeReply, MethodHandler } from './call.ts';
import type { TransportLimits } from '../limits/transport-limits.ts';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const replyBytes = 200_000;
/** The replies that were built, and the most memory held after any of them. */
let built = 0;
let mostHeld = 0;

const large: LargeReply = {
  heldBytes: 8,
  within: (roomBytes) => {
    if (replyBytes > roomBytes) return replyBytes;
    built += 1;
    setImmediate(() => (mostHeld = Math.max(mostHeld, server.transport.replyBytes)));
    return Buffer.alloc(replyBytes);
  },
};
const monstrous: LargeReply = { heldBytes: 8, within: (roomBytes) => (roomBytes < 5e9 ? 5e9 : Buffer.alloc(5)) };
const routes: Record<string, MethodHandler> = {
  '/t.T/Echo': { kind: 'unary', handle: echo },
  '/t.T/Large': { kind: 'unary', handle: () => large },
  '/t.T/LateLarge': { kind: 'unary', handle: () => new Promise((resolve) => setImmediate(() => resolve(large))) },
  '/t.T/Endless': {
    kind: 'serverStream',
    handle: async (_request, _call, send) => {
      for (;;) await send(Buffer.alloc(replyBytes));
    },
  },
  '/t.T/Monstrous': { kind: 'unary', handle: () => monstrous },
};
let server: TestServer;

/** Room for this many large replies, and an eighth more for small ones. */
const roomFor = (replies: number): number => Math.ceil((replies * replyBytes * 8) / 7);

async function serve(limits: Partial<TransportLimits>): Promise<void> {
  built = 0;
  mostHeld = 0;
  server = await startTestServer(routes, limits);
  cleanups.push(() => server.transport.close({ graceMs: 50 }));
}

function unreadClient(): UnreadClient {
  const client = new UnreadClient(server.port);
  cleanups.push(() => client.session.destroy());
  return client;
}

/** The response to another client also shows that the server has processed the earlier requests. */
async function expectEcho(times = 1): Promise<void> {
  const client = new RawClient(server.port);
  for (let time = 0; time < times; time += 1) {
    const reply = await client.call({ path: '/t.T/Echo', chunks: [frameMessage(Buffer.from('x'))] });
    expect(reply.trailers['grpc-status']).toBe('0');
  }
  await client.close();
}

const patience = { timeout: 20_000, interval: 10 };

async function expectHeld(bytes: number): Promise<void> {
  await expect.poll(() => server.transport.replyBytes, patience).toBe(bytes);
}

test('the budget of a reply is returned when it has been read, large or small', async () => {
  // Each round uses the whole budget.
  await serve({ maxConnectionReplyBytes: 100, maxTotalReplyBytes: roomFor(1) });
  const client = new RawClient(server.port);
  cleanups.push(() => client.close());
  for (let round = 0; round < 3; round += 1) {
    for (const path of ['/t.T/Large', '/t.T/LateLarge', '/t.T/Echo']) {
      const { trailers } = await client.call({ path, chunks: [frameMessage(Buffer.alloc(200))] });
      expect(trailers['grpc-status']).toBe('0');
      await expectHeld(0);
    }
  }
});

describe('unread replies', () => {
  test.each(['/t.T/Large', '/t.T/LateLarge'])('are limited for all clients together (%s)', async (path) => {
    const limits = { maxConnectionReplyBytes: 350_000, maxTotalReplyBytes: roomFor(5), replyPatienceMs: 600_000 };
    await serve(limits);
    const clients = Array.from({ length: 6 }, unreadClient);
    for (const client of clients) for (let call = 0; call < 10; call += 1) client.call(path);
    await expectHeld(5 * replyBytes);
    // Small replies are still sent.
    await expectEcho(50);
    expect(built).toBe(5);
    expect(mostHeld).toBeLessThanOrEqual(limits.maxTotalReplyBytes);
    // Read replies are replaced by queued ones, until all that were not refused have arrived.
    for (const client of clients) client.read();
    const done = () => clients.every(({ statuses }) => statuses.length === 10);
    await vi.waitFor(() => expect(done()).toBe(true), patience);
    await expectHeld(0);
    const statuses = new Set(clients.flatMap((client) => client.statuses));
    expect(
      [...statuses].filter((status) => status !== undefined && status !== String(GrpcCode.resourceExhausted)),
    ).toEqual([]);
    expect(mostHeld).toBeLessThanOrEqual(limits.maxTotalReplyBytes);
    expect(built).toBeGreaterThan(5);
  });

  test('are released when their streams are reset, queued ones too', async () => {
    await serve({ maxTotalReplyBytes: roomFor(2), replyPatienceMs: 600_000 });
    const client = unreadClient();
    const other = unreadClient();
    const streams = Array.from({ length: 5 }, () => client.call('/t.T/LateLarge'));
    await expectHeld(2 * replyBytes);
    const waiting = other.call('/t.T/LateLarge');
    await expectEcho();
    for (const stream of streams) stream.close(8);
    await expectHeld(replyBytes);
    waiting.close(8);
    await expectHeld(0);
    await expect.poll(() => server.transport.calls, patience).toBe(0);
  });

  test('are released when their connection breaks or is closed, also while a socket holds some of them', async () => {
    await serve({ stalledReplyTimeoutMs: 600_000 });
    for (const end of ['destroy', 'close'] as const) {
      const client = unreadClient();
      for (let call = 0; call < 3; call += 1) client.call('/t.T/Large');
      await expectHeld(3 * replyBytes);
      if (end === 'destroy') client.session.destroy();
      else client.session.goaway(1);
      await expectHeld(0);
    }
  });

  test('of a server stream count as well, until they are read or the stream ends', async () => {
    await serve({});
    const [client, other] = [unreadClient(), unreadClient()];
    client.call('/t.T/Endless');
    const reset = other.call('/t.T/Endless');
    await expectHeld(2 * replyBytes);
    reset.close(8);
    await expectHeld(replyBytes);
    client.session.destroy();
    await expectHeld(0);
  });

  test('count while the socket holds them, though the stream has been ended', async () => {
    await serve({ stalledReplyTimeoutMs: 30, sweepIntervalMs: 10 });
    // A client with open windows that does not read its socket.
    const socket = connect(server.port, '127.0.0.1').pause();
    cleanups.push(() => void socket.destroy());
    const largestWindow = 2 ** 31 - 1;
    const increment = Buffer.alloc(4);
    increment.writeUInt32BE(largestWindow - 65_535);
    const opening = [
      http2Preface,
      settingsFrame([4, largestWindow]),
      http2Frame(frameTypes.windowUpdate, 0, 0, increment),
    ];
    const calls = Array.from({ length: 100 }, (_, at) => [
      http2Frame(frameTypes.headers, endHeaders, 2 * at + 1, headerBlock(grpcHeaders('/t.T/Large'))),
      http2Frame(frameTypes.data, endStream, 2 * at + 1, frameMessage(Buffer.from('x'))),
    ]);
    socket.write(Buffer.concat([...opening, ...calls.flat()]));
    // More is held than the open calls can have: the rest is on its way to the socket, and is released with it.
    const moreThanCallsHold = () => server.transport.replyBytes > server.transport.calls * replyBytes;
    await expect.poll(moreThanCallsHold, patience).toBe(true);
    socket.destroy();
    await expectHeld(0);
  });

  test('are released when the reader stalls for too long', async () => {
    await serve({ stalledReplyTimeoutMs: 30, sweepIntervalMs: 10 });
    unreadClient().call('/t.T/Large');
    await expect.poll(() => built, patience).toBe(1);
    await expectHeld(0);
  });

  test('close the connection that holds most, when others wait for too long', async () => {
    await serve({ maxTotalReplyBytes: roomFor(3), replyPatienceMs: 30 });
    const [greedy, modest, late] = [unreadClient(), unreadClient(), unreadClient()];
    greedy.call('/t.T/Large');
    greedy.call('/t.T/Large');
    await expectHeld(2 * replyBytes);
    modest.call('/t.T/Large');
    await expectHeld(3 * replyBytes);
    late.call('/t.T/Large');
    await greedy.closed;
    await expectHeld(2 * replyBytes);
    expect(built).toBe(4);
    expect(server.logged).toHaveLength(1);
    expect([modest.session.closed, late.session.closed]).toEqual([false, false]);
  });
});

test('a reply larger than the total limit is refused, and delays no other reply', async () => {
  await serve({ maxTotalReplyBytes: roomFor(2) });
  const client = new RawClient(server.port);
  cleanups.push(() => client.close());
  const { trailers } = await client.call({ path: '/t.T/Monstrous', chunks: [frameMessage(Buffer.from('x'))] });
  const message = `grpc: trying to send message larger than max (5000000000 vs. ${2 * replyBytes})`;
  expect(trailers).toMatchObject({ 'grpc-status': '8', 'grpc-message': message });
  const reply = await client.call({ path: '/t.T/Large', chunks: [frameMessage(Buffer.from('x'))] });
  expect(reply.body).toHaveLength(replyBytes);
});

test('the deadline of a call also holds while its reply waits for room', async () => {
  await serve({ maxTotalReplyBytes: roomFor(1), replyPatienceMs: 600_000 });
  unreadClient().call('/t.T/Large');
  await expectHeld(replyBytes);
  const client = new RawClient(server.port);
  cleanups.push(() => client.close());
  for (const path of ['/t.T/Large', '/t.T/LateLarge']) {
    const call = { path, headers: { 'grpc-timeout': '50m' }, chunks: [frameMessage(Buffer.from('x'))] };
    expect((await client.call(call)).trailers['grpc-status']).toBe(String(GrpcCode.deadlineExceeded));
  }
});
