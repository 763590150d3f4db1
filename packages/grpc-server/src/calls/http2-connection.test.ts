import { connect as connectHttp2 } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
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
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import { deferred, echo, startTestServer, type TestServer } from '@tenure/test-support';
import type { DuplexCall, MethodHandler } from './call.ts';
import type { TransportLimits } from '../limits/transport-limits.ts';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(routes: Record<string, MethodHandler>, limits: Partial<TransportLimits>): Promise<TestServer> {
  const server = await startTestServer(routes, limits);
  cleanups.push(() => server.transport.close({ graceMs: 50 }));
  return server;
}

const echoRoute: Record<string, MethodHandler> = { '/t.T/Echo': { kind: 'unary', handle: echo } };
const quickSweep = { sweepIntervalMs: 10 };

function open(port: number, bytes: Buffer = Buffer.alloc(0)): { socket: Socket; closed: Promise<Buffer> } {
  const socket = connectSocket(port, '127.0.0.1');
  const received: Buffer[] = [];
  cleanups.push(() => void socket.destroy());
  socket.on('error', () => {});
  socket.on('data', (chunk) => received.push(chunk));
  socket.write(bytes);
  return { socket, closed: new Promise((resolve) => socket.on('close', () => resolve(Buffer.concat(received)))) };
}

/** Resolves when a frame of the type has come. */
function frameOf(type: number, socket: Socket): Promise<void> {
  let received = Buffer.alloc(0);
  return new Promise((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      for (let at = 0; at + 9 <= received.length; at += 9 + received.readUIntBE(at, 3)) {
        if (received[at + 3] === type) resolve();
      }
    });
  });
}

function openClient(port: number): RawClient {
  const client = new RawClient(port);
  cleanups.push(() => client.close());
  return client;
}

/** A connection whose client never lets the server send a byte of a message. */
function stalledCall(port: number, path: string): Promise<number> {
  const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } });
  cleanups.push(() => void session.destroy());
  session.on('error', () => {});
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' });
  stream.on('error', () => {});
  stream.end(frameMessage(Buffer.from('x')));
  return new Promise((resolve) => stream.on('close', () => resolve(stream.rstCode ?? 0)));
}

async function expectAlive(port: number): Promise<void> {
  const reply = await openClient(port).call({ path: '/t.T/Echo', chunks: [frameMessage(Buffer.from('x'))] });
  expect(reply.trailers['grpc-status']).toBe('0');
}

/** The same, for tests in which a server that pauses for a moment may mistake a healthy client for a dead one. */
async function expectAliveInTheEnd(port: number): Promise<void> {
  await vi.waitFor(() => expectAlive(port), { timeout: 20_000, interval: 20 });
}

describe('a client that holds a connection and does nothing', () => {
  test('is disconnected when its protocol stays unknown', async () => {
    const { port } = await serve(echoRoute, { prefaceTimeoutMs: 30 });
    await Promise.all([open(port).closed, open(port, http2Preface.subarray(0, 20)).closed]);
    await expectAliveInTheEnd(port);
  });

  test('is disconnected when it does not finish the headers of HTTP/1', async () => {
    const { port } = await serve({}, { http1HeadersTimeoutMs: 30, http1RequestTimeoutMs: 60, ...quickSweep });
    const answer = await open(port, Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n')).closed;
    expect(answer.toString()).toContain('408');
  });

  test('is disconnected when it does not answer a PING', async () => {
    const limits = { keepAliveIntervalMs: 20, keepAliveTimeoutMs: 30, ...quickSweep };
    const { port } = await serve(echoRoute, limits);
    await open(port, Buffer.concat([http2Preface, settingsFrame()])).closed;
    await expectAliveInTheEnd(port);
  });

  test('keeps its connection when it answers', async () => {
    const limits = { keepAliveIntervalMs: 20, keepAliveTimeoutMs: 500, ...quickSweep };
    const { port, transport } = await serve(echoRoute, limits);
    const client = openClient(port);
    await client.call({ path: '/t.T/Echo', chunks: [frameMessage(Buffer.from('x'))] });
    let pings = 0;
    const answered = new Promise<void>((resolve) => client.session.on('ping', () => (pings += 1) === 3 && resolve()));
    // Another client that connected later and does not answer has been disconnected by then.
    await Promise.all([answered, open(port, Buffer.concat([http2Preface, settingsFrame()])).closed]);
    expect(transport.connections).toBe(1);
    expect(client.session.closed).toBe(false);
  });

  test('loses a call whose request it never finishes', async () => {
    const { port } = await serve(echoRoute, { requestTimeoutMs: 30, ...quickSweep });
    const reply = await openClient(port).call({ path: '/t.T/Echo', chunks: [Buffer.alloc(1)], keepOpen: true });
    expect(reply.trailers['grpc-status']).toBe('4');
  });
});

describe('a client that does not read', () => {
  const large = (): Buffer => Buffer.alloc(200_000);

  test('loses a unary reply and a server stream of which it reads nothing', async () => {
    const routes: Record<string, MethodHandler> = {
      '/t.T/Large': { kind: 'unary', handle: large },
      '/t.T/Endless': {
        kind: 'serverStream',
        handle: async (_request, _call, send) => {
          for (;;) await send(large());
        },
      },
    };
    const { port, transport } = await serve(routes, { stalledReplyTimeoutMs: 30, ...quickSweep });
    await Promise.all([stalledCall(port, '/t.T/Large'), stalledCall(port, '/t.T/Endless')]);
    expect(transport.calls).toBe(0);
  });

  test('is refused further replies, while others are served', async () => {
    const routes: Record<string, MethodHandler> = { ...echoRoute, '/t.T/Large': { kind: 'unary', handle: large } };
    const { port } = await serve(routes, { maxConnectionReplyBytes: 500_000 });
    const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } });
    cleanups.push(() => void session.destroy());
    const statuses: unknown[] = [];
    const refused = deferred();
    for (let i = 0; i < 4; i++) {
      const stream = session.request({ ':method': 'POST', ':path': '/t.T/Large', 'content-type': 'application/grpc' });
      stream.on('error', () => {});
      stream.on('response', (headers) => {
        statuses.push(headers['grpc-status']);
        if (statuses.length === 4) refused.resolve();
      });
      stream.end(frameMessage(Buffer.from('x')));
    }
    await refused.promise;
    expect(statuses).toEqual([undefined, undefined, undefined, String(GrpcCode.resourceExhausted)]);
    await expectAlive(port);
  });

  test('is disconnected when too much is held in total', async () => {
    const routes: Record<string, MethodHandler> = { ...echoRoute, '/t.T/Large': { kind: 'unary', handle: large } };
    const { port, logged } = await serve(routes, { maxTotalReplyBytes: 300_000, maxConnectionReplyBytes: 250_000 });
    const greedy = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } });
    cleanups.push(() => void greedy.destroy());
    greedy.on('error', () => {});
    const closed = new Promise<void>((resolve) => greedy.on('close', () => resolve()));
    for (let i = 0; i < 2; i++) {
      const stream = greedy.request({ ':method': 'POST', ':path': '/t.T/Large', 'content-type': 'application/grpc' });
      stream.on('error', () => {});
      stream.end(frameMessage(Buffer.from('x')));
    }
    await closed;
    expect(logged).toHaveLength(1);
    await expectAlive(port);
  });

  test('makes send return false, and triggers onDrain when it reads again', async () => {
    const ready = deferred();
    const drained = deferred();
    let call: DuplexCall | undefined;
    const routes: Record<string, MethodHandler> = {
      '/t.T/Talk': {
        kind: 'bidi',
        handle: (opened) => {
          call = opened;
          opened.onDrain = drained.resolve;
          opened.onMessage = () => ready.resolve();
        },
      },
    };
    const { port } = await serve(routes, { maxStreamBufferedBytes: 300_000 });
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    cleanups.push(() => void session.destroy());
    const stream = session.request({ ':method': 'POST', ':path': '/t.T/Talk', 'content-type': 'application/grpc' });
    stream.write(frameMessage(Buffer.from('x')));
    await ready.promise;
    let sent = 0;
    while (call?.send(Buffer.alloc(10_000)) === true) sent += 1;
    expect(sent).toBe(29);
    expect(call?.bufferedBytes).toBe(300_000);
    stream.resume();
    await drained.promise;
    expect(call?.bufferedBytes).toBe(0);
  });
});

describe('a client that floods', () => {
  async function expectDisconnected(flood: Buffer, limits: Partial<TransportLimits> = {}): Promise<void> {
    const { port } = await serve(echoRoute, limits);
    await open(port, Buffer.concat([http2Preface, settingsFrame(), flood])).closed;
    await expectAlive(port);
  }
  const repeat = (count: number, frame: (i: number) => Buffer): Buffer =>
    Buffer.concat(Array.from({ length: count }, (_, i) => frame(i)));
  const block = headerBlock(grpcHeaders('/t.T/Echo'));

  test('PING frames is disconnected', async () => {
    await expectDisconnected(
      repeat(101, () => http2Frame(frameTypes.ping, 0, 0, Buffer.alloc(8))),
      { maxPingsPerSweep: 100 },
    );
  });

  test('SETTINGS frames is disconnected', async () => {
    await expectDisconnected(
      repeat(101, () => settingsFrame([3, 100])),
      { maxSettingsPerSweep: 100 },
    );
  });

  test('immediately reset calls is disconnected', async () => {
    await expectDisconnected(
      repeat(200, (i) =>
        Buffer.concat([
          http2Frame(frameTypes.headers, endHeaders, 2 * i + 1, block),
          http2Frame(frameTypes.rstStream, 0, 2 * i + 1, Buffer.from([0, 0, 0, 8])),
        ]),
      ),
      { maxResetsPerSweep: 100 },
    );
  });

  test('more of them than nghttp2 allows gets a GOAWAY', async () => {
    const { port } = await serve(echoRoute, {});
    const resets = repeat(20_000, (i) =>
      Buffer.concat([
        http2Frame(frameTypes.headers, endHeaders, 2 * i + 1, block),
        http2Frame(frameTypes.rstStream, 0, 2 * i + 1, Buffer.from([0, 0, 0, 8])),
      ]),
    );
    const client = open(port, Buffer.concat([http2Preface, settingsFrame(), resets]));
    await Promise.race([frameOf(frameTypes.goaway, client.socket), client.closed]);
    await expectAlive(port);
  });

  test('one endless header block is disconnected', async () => {
    const piece = headerBlock([['x-more', 'x'.repeat(1000)]]);
    await expectDisconnected(
      Buffer.concat([
        http2Frame(frameTypes.headers, endStream, 1, block),
        repeat(1000, () => http2Frame(frameTypes.continuation, 0, 1, piece)),
      ]),
    );
  });

  test('empty DATA frames is disconnected', async () => {
    await expectDisconnected(
      Buffer.concat([
        http2Frame(frameTypes.headers, endHeaders, 1, block),
        repeat(1000, () => http2Frame(frameTypes.data, 0, 1)),
      ]),
      { maxIneffectiveFramesPerSweep: 999 },
    );
  });
});

test('connections beyond the limit are closed as they arrive', async () => {
  const { port, transport } = await serve(echoRoute, { maxConnections: 2 });
  const first = openClient(port);
  const second = openClient(port);
  for (const client of [first, second]) {
    await client.call({ path: '/t.T/Echo', chunks: [frameMessage(Buffer.from('x'))] });
  }
  await open(port).closed;
  expect(transport.connections).toBe(2);
  await first.close();
  await expectAlive(port);
});

test('a paused bidirectional call stops its client by flow control, and resumes', async () => {
  const received: number[] = [];
  const paused = deferred();
  const finished = deferred();
  let call: DuplexCall | undefined;
  const routes: Record<string, MethodHandler> = {
    '/t.T/Talk': {
      kind: 'bidi',
      handle: (opened) => {
        call = opened;
        opened.onMessage = (message) => {
          received.push(message.readUInt32BE(0));
          if (received.length !== 3) return;
          opened.pause();
          paused.resolve();
        };
        opened.onHalfClose = () => {
          opened.end(new GrpcStatus(GrpcCode.ok, ''));
          finished.resolve();
        };
      },
    },
  };
  const { port } = await serve(routes, { streamWindowBytes: 100_000 });
  const numbered = Array.from({ length: 100 }, (_, i) => {
    const body = Buffer.alloc(10_000);
    body.writeUInt32BE(i);
    return frameMessage(body);
  });
  const reply = openClient(port).call({ path: '/t.T/Talk', chunks: numbered });
  await paused.promise;
  expect(received).toEqual([0, 1, 2]);
  call?.resume();
  await finished.promise;
  expect((await reply).trailers['grpc-status']).toBe('0');
  expect(received).toEqual(numbered.map((_, i) => i));
});

test('a protocol error with more frames in the same packet ends only its connection', async () => {
  const { port } = await serve(echoRoute, { maxPingsPerSweep: 0 });
  const block = headerBlock(grpcHeaders('/t.T/Echo'));
  const call = [
    http2Frame(frameTypes.headers, endHeaders, 1, block),
    http2Frame(frameTypes.data, 0, 1, frameMessage(Buffer.from('x'))),
  ];
  const opening = [http2Preface, settingsFrame()];
  const ping = http2Frame(frameTypes.ping, 0, 0, Buffer.alloc(8));
  const goaway = http2Frame(frameTypes.goaway, 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]));
  for (const breach of [ping, goaway]) await open(port, Buffer.concat([...opening, breach, ...call])).closed;
  await expectAlive(port);
});

test('memory of paused calls and unfinished messages is limited per connection', async () => {
  const routes: Record<string, MethodHandler> = {
    ...echoRoute,
    '/t.T/Paused': { kind: 'bidi', handle: (call) => call.pause() },
    '/t.T/Talk': { kind: 'bidi', handle: () => {} },
  };
  const limits = { maxConnectionRequestBytes: 150_000, streamWindowBytes: 100_000 };
  const { port } = await serve(routes, limits);
  const prefix = Buffer.from([0, 0, 3, 0, 0]);
  const unfinished = [prefix, ...Array.from({ length: 4 }, () => Buffer.alloc(15_000))];
  for (const path of ['/t.T/Paused', '/t.T/Talk', '/t.T/Echo']) {
    const { socket } = open(port, Buffer.concat([http2Preface, settingsFrame()]));
    // The client finishes none of the calls, so response headers mean a refusal.
    const refused = frameOf(frameTypes.headers, socket);
    for (const streamId of [1, 3, 5, 7]) {
      socket.write(http2Frame(frameTypes.headers, endHeaders, streamId, headerBlock(grpcHeaders(path))));
      for (const piece of unfinished) socket.write(http2Frame(frameTypes.data, 0, streamId, piece));
    }
    await refused;
    socket.destroy();
  }
  await expectAlive(port);
});
