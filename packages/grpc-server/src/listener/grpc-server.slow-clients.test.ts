import {
  callFrames,
  echo,
  endHeaders,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  http2Preface,
  openFrame,
  FrameClient,
  startTestServer,
  type TestServer,
} from '@tenure/test-support';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { GrpcCode, GrpcStatus } from '../calls/grpc-status.ts';
import { createGrpcServer } from './grpc-server.ts';
import type { MethodHandler } from '../calls/call.ts';
import type { TransportLimits } from '../limits/transport-limits.ts';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const patience = { timeout: 30_000, interval: 5 };
const initialWindowSize = 4;
const block = headerBlock(grpcHeaders('/t.T/Echo'));

async function serve(routes: Record<string, MethodHandler>, limits: Partial<TransportLimits>): Promise<TestServer> {
  const server = await startTestServer(routes, limits);
  cleanups.push(() => server.transport.close({ graceMs: 0 }));
  return server;
}

/** Where a client stops, after the preface and its SETTINGS. */
const stops: Record<string, Buffer> = {
  'the head of a frame': Buffer.from([0, 0, 8, 6]),
  'the payload of a frame': http2Frame(frameTypes.ping, 0, 0, Buffer.alloc(8)).subarray(0, 12),
  HEADERS: http2Frame(frameTypes.headers, endHeaders, 1, block).subarray(0, 30),
  'a header block': http2Frame(frameTypes.headers, 0, 1, block.subarray(0, 30)),
  CONTINUATION: Buffer.concat([
    http2Frame(frameTypes.headers, 0, 1, block.subarray(0, 30)),
    http2Frame(frameTypes.continuation, 0, 1, block.subarray(30, 40)),
  ]),
  DATA: Buffer.concat([openFrame(1, '/t.T/Echo'), http2Frame(frameTypes.data, 0, 1, Buffer.alloc(90)).subarray(0, 50)]),
};

describe('a client that answers every PING is disconnected when it stops within', () => {
  const limits = { requestTimeoutMs: 50, sweepIntervalMs: 10 };
  const reason = 'a client does not complete what it has begun to send';

  test.each(Object.entries(stops))('%s', async (_name, bytes) => {
    const { port, transport, logged } = await serve({ '/t.T/Echo': { kind: 'unary', handle: echo } }, limits);
    const client = new FrameClient(port).open();
    cleanups.push(() => client.destroy());
    client.send(bytes);
    await client.closed;
    expect(logged).toEqual([reason]);
    await expect.poll(() => transport.connections, patience).toBe(0);
    expect(transport.calls).toBe(0);
  });

  test('the preface: it sends no SETTINGS', async () => {
    const { port, logged } = await serve({ '/t.T/Echo': { kind: 'unary', handle: echo } }, limits);
    const socket = connect(port, '127.0.0.1');
    cleanups.push(() => void socket.destroy());
    socket.resume();
    socket.write(http2Preface);
    await new Promise((resolve) => socket.on('close', resolve));
    expect(logged).toEqual([reason]);
  });
});

describe('a call that has ended, and whose client takes nothing of what is left', () => {
  const limits = { stalledReplyTimeoutMs: 50, sweepIntervalMs: 10 };

  test('is reset', async () => {
    const talk: MethodHandler = {
      kind: 'bidi',
      handle: (call) => {
        call.onMessage = (message) => {
          call.send(echo(message));
          call.end(new GrpcStatus(GrpcCode.unavailable, 'the end'));
        };
      },
    };
    const { port, transport } = await serve({ '/t.T/Talk': talk }, limits);
    const client = new FrameClient(port).open([initialWindowSize, 0]);
    cleanups.push(() => client.destroy());
    client.send(callFrames(1, '/t.T/Talk'));
    await client.next(frameTypes.rstStream, 1);
    expect(transport.calls).toBe(0);
  });

  test('is reset over HTTP too', async () => {
    const transport = createGrpcServer({
      routes: new Map(),
      onHttp: () => Promise.resolve({ status: 404, headers: {}, body: '' }),
      log: { debug: () => {}, warn: () => {}, error: () => {} },
      limits,
      httpStreams: {
        serves: () => true,
        handle: (stream) => {
          stream.respond(200, {});
          stream.end(Buffer.from('the end'));
        },
      },
    });
    cleanups.push(() => transport.close({ graceMs: 0 }));
    const { port } = await transport.listen('127.0.0.1', 0);
    const client = new FrameClient(port).open([initialWindowSize, 0]);
    cleanups.push(() => client.destroy());
    const fields = headerBlock([
      [':method', 'GET'],
      [':scheme', 'http'],
      [':path', '/v3/x'],
      [':authority', 'x'],
    ]);
    client.send(http2Frame(frameTypes.headers, endHeaders | 1, 1, fields));
    await client.next(frameTypes.rstStream, 1);
    expect(transport.calls).toBe(0);
  });
});
