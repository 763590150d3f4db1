import {
  callFrames,
  dataFrame,
  echo,
  endHeaders,
  frameTypes,
  headerBlock,
  http2Frame,
  openFrame,
  FrameClient,
  repeat,
  settingsFrame,
  startTestServer,
  type TestServer,
  windowUpdate,
} from '@tenure/test-support';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createGrpcServer } from './grpc-server.ts';
import type { HttpHandler, MethodHandler } from '../calls/call.ts';
import type { TransportLimits } from '../limits/transport-limits.ts';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const initialWindowSize = 4;
const smallReplyBytes = 50_000;
let smallReplies = 0;

async function serve(limits: Partial<TransportLimits>, onHttp?: HttpHandler): Promise<TestServer> {
  const routes: Record<string, MethodHandler> = {
    '/t.T/Echo': { kind: 'unary', handle: echo },
    '/t.T/Large': { kind: 'unary', handle: () => Buffer.alloc(200_000) },
    '/t.T/Small': {
      kind: 'unary',
      handle: () => {
        smallReplies += 1;
        return Buffer.alloc(smallReplyBytes);
      },
    },
    '/t.T/Never': { kind: 'unary', handle: () => new Promise(() => {}) },
    '/t.T/Talk': { kind: 'bidi', handle: () => {} },
  };
  const server = await startTestServer(routes, limits, onHttp);
  cleanups.push(() => server.transport.close({ graceMs: 0 }));
  return server;
}

function attack(port: number, settings: readonly (readonly [number, number])[] = []): FrameClient {
  const client = new FrameClient(port).open(...settings);
  cleanups.push(() => client.destroy());
  return client;
}

async function expectAllGivenBack({ transport }: TestServer): Promise<void> {
  await vi.waitFor(() => expect(transport.connections).toBe(0), { timeout: 5000 });
  expect(transport.calls).toBe(0);
  expect(transport.replyBytes).toBe(0);
}

describe('a connection that is closed because of its own last call', () => {
  test.each(['/t.T/Never', '/t.T/Talk', '/t.T/Echo', '/no.Such/Method'])('gives back every call: %s', async (path) => {
    const server = await serve({ maxTotalCalls: 2 });
    const client = attack(server.port);
    client.send(openFrame(1, path), openFrame(3, '/t.T/Talk'), openFrame(5, '/t.T/Never'), openFrame(7, path));
    await client.closed;
    await expectAllGivenBack(server);
  });

  test('gives back the bytes of its reply', async () => {
    const server = await serve({ maxTotalReplyBytes: 300_000 });
    const client = attack(server.port, [[initialWindowSize, 0]]);
    client.send(callFrames(1, '/t.T/Large'), callFrames(3, '/t.T/Large'));
    await client.closed;
    await expectAllGivenBack(server);
  });

  test('gives back the bytes of a response over HTTP', async () => {
    const body = 'x'.repeat(200_000);
    const server = await serve({ maxTotalReplyBytes: 300_000 }, () =>
      Promise.resolve({ status: 200, headers: {}, body }),
    );
    const client = attack(server.port, [[initialWindowSize, 0]]);
    const fields = [
      [':method', 'GET'],
      [':scheme', 'http'],
      [':path', '/metrics'],
      [':authority', 'x'],
    ] as const;
    client.send(repeat(2, (at) => http2Frame(frameTypes.headers, endHeaders | 1, 2 * at + 1, headerBlock(fields))));
    await client.closed;
    await expectAllGivenBack(server);
  });
});

/** A client with room in every window, which does not read its socket. */
function attackUnread(port: number): FrameClient {
  const client = attack(port, [[initialWindowSize, 2 ** 31 - 1]]);
  client.send(windowUpdate(0, 2 ** 30));
  client.socket.pause();
  return client;
}

const largeCalls = (count: number, path = '/t.T/Large'): Buffer => repeat(count, (at) => callFrames(2 * at + 1, path));

/** More than the system takes for a client that does not read. */
const unreadCalls = 300;

describe('what waits for a client that does not read', () => {
  test('does not protect the connection that holds most, when it is closed itself', async () => {
    const server = await serve({ maxTotalReplyBytes: 30_000_000, maxConnectionReplyBytes: 29_000_000 });
    const closing = attackUnread(server.port);
    closing.send(largeCalls(unreadCalls));
    await vi.waitFor(() => expect(server.transport.replyBytes).toBeGreaterThan(20_000_000), { timeout: 10_000 });
    // The connection ends, and its client reads nothing of that.
    closing.send(settingsFrame(...Array.from({ length: 33 }, () => [initialWindowSize, 0] as const)));
    const greedy = attack(server.port, [[initialWindowSize, 0]]);
    greedy.send(largeCalls(140));
    const other = attack(server.port, [[initialWindowSize, 0]]);
    other.send(largeCalls(60));
    await greedy.closed;
    await other.next(frameTypes.headers, 119);
  });

  test('is counted while it waits behind what the system has not taken', async () => {
    const server = await serve({ maxOutputBytes: 100_000_000 });
    const client = attackUnread(server.port);
    const filling = 400;
    const waiting = 40;
    client.send(largeCalls(filling, '/t.T/Small'));
    await vi.waitFor(() => expect(smallReplies).toBe(filling), { timeout: 10_000 });
    const before = await steadyBytes(server);
    client.send(repeat(waiting, (at) => callFrames(2 * (filling + at) + 1, '/t.T/Small')));
    await vi.waitFor(() => expect(smallReplies).toBe(filling + waiting), { timeout: 10_000 });
    const after = await steadyBytes(server);
    expect(after - before).toBeGreaterThanOrEqual(waiting * smallReplyBytes);
    await client.destroy();
    await expectAllGivenBack(server);
  });
});

/** The bytes of replies, when they change no more. */
async function steadyBytes({ transport, port }: TestServer): Promise<number> {
  for (;;) {
    const before = transport.replyBytes;
    const probe = attack(port);
    for (let turn = 0; turn < 10; turn += 1) await probe.settled();
    await probe.destroy();
    if (transport.replyBytes === before) return before;
  }
}

test('the data of a paused request over HTTP counts as bytes of requests', async () => {
  const transport = createGrpcServer({
    routes: new Map(),
    onHttp: () => Promise.resolve({ status: 404, headers: {}, body: '' }),
    log: { debug: () => {}, warn: () => {}, error: () => {} },
    limits: { maxConnectionRequestBytes: 150_000 },
    httpStreams: {
      serves: () => true,
      handle: (stream) => {
        stream.pause();
        stream.onRefuse = () => {
          stream.respond(503, {});
          stream.end();
        };
      },
    },
  });
  cleanups.push(() => transport.close({ graceMs: 0 }));
  const { port } = await transport.listen('127.0.0.1', 0);
  const client = attack(port);
  const block = headerBlock([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', '/v3/x'],
    [':authority', 'x'],
  ]);
  for (const id of [1, 3, 5, 7]) {
    const body = repeat(4, () => dataFrame(id, Buffer.alloc(15_000)));
    client.send(http2Frame(frameTypes.headers, endHeaders, id, block), body);
  }
  const { streamId } = await client.next(frameTypes.headers);
  expect(streamId).toBe(5);
});

test('a header block that is not complete counts as bytes of a request', async () => {
  const server = await serve({ maxTotalRequestBytes: 200_000 });
  const clients = Array.from({ length: 6 }, () => attack(server.port));
  const half = (): Buffer => http2Frame(frameTypes.headers, 0, 1, Buffer.alloc(16_000));
  const more = http2Frame(frameTypes.continuation, 0, 1, Buffer.alloc(16_000));
  for (const client of clients) client.send(half(), more, more);
  await Promise.race(clients.map(({ closed }) => closed));
  expect(server.logged[0]).toContain('requestBytes');
});
