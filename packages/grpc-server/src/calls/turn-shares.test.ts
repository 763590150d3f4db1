import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
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
import { afterEach, beforeEach, expect, test } from 'vitest';
import { echo, startTestServer, type TestServer } from '@tenure/test-support';
import type { MethodHandler } from './call.ts';

const perTurn = 5;
const streams = 400;
const patience = { timeout: 20_000, interval: 5 };
const cancelled = Buffer.from([0, 0, 0, 8]);

/** The calls seen by the handlers, in order. */
let calls: string[] = [];
let server: TestServer;
let sockets: Socket[] = [];

const noted: MethodHandler = {
  kind: 'unary',
  handle: (request) => {
    calls.push(request.toString());
    return echo(request);
  },
};
const watched: MethodHandler = { kind: 'bidi', handle: () => void calls.push('stream') };

beforeEach(async () => {
  calls = [];
  sockets = [];
  const limits = { maxStreamStartsPerTurn: perTurn, maxTotalStreamStartsPerTurn: 2 * perTurn };
  server = await startTestServer({ '/t.T/Noted': noted, '/t.T/Watched': watched }, limits);
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => server.transport.calls, patience).toBe(0);
  await server.transport.close({ graceMs: 50 });
});

async function open(): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => {});
  await new Promise<void>((resolve) => socket.on('connect', () => resolve()));
  socket.write(Buffer.concat([http2Preface, settingsFrame()]));
  socket.resume();
  return socket;
}

function callFrames(streamId: number, path: string, message: string): Buffer[] {
  return [
    http2Frame(frameTypes.headers, endHeaders, streamId, headerBlock(grpcHeaders(path))),
    http2Frame(frameTypes.data, endStream, streamId, frameMessage(Buffer.from(message))),
  ];
}

function burst(count: number, path: string, message: string): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, at) => callFrames(2 * at + 1, path, message)).flat());
}

test('a limited number of the streams of a burst begin in a turn, and all of them begin', async () => {
  let most = 0;
  let seen = 0;
  let isCounting = true;
  const tick = (): void => {
    most = Math.max(most, calls.length - seen);
    seen = calls.length;
    if (isCounting) setImmediate(tick);
  };
  tick();
  for (const name of ['a', 'b', 'c']) (await open()).write(burst(streams, '/t.T/Noted', name));
  await expect.poll(() => calls.length, patience).toBe(3 * streams);
  isCounting = false;
  // Between two samples there is at most one turn, and a part of the next one.
  expect(most).toBeLessThanOrEqual(2 * 2 * perTurn);
});

test('a connection with one stream does not wait for the burst of another', async () => {
  const [greedy, modest] = [await open(), await open()];
  await expect.poll(() => server.transport.connections, patience).toBe(2);
  greedy.write(burst(streams, '/t.T/Noted', 'greedy'));
  modest.write(burst(1, '/t.T/Noted', 'modest'));
  await expect.poll(() => calls.length, patience).toBe(streams + 1);
  expect(calls.indexOf('modest')).toBeLessThan(streams / 2);
});

test('streams that are reset at once begin in their turns too, and others go on', async () => {
  const resets = Array.from({ length: streams }, (_, at) => http2Frame(frameTypes.rstStream, 0, 2 * at + 1, cancelled));
  for (const path of ['/t.T/Watched', '/t.T/Noted']) {
    const socket = await open();
    const last = callFrames(2 * streams + 1, '/t.T/Noted', 'last');
    socket.write(Buffer.concat([burst(streams, path, 'reset'), ...resets, ...last]));
    const client = new RawClient(server.port);
    await client.call({ path: '/t.T/Noted', chunks: [frameMessage(Buffer.from('other'))] });
    expect(calls.indexOf('other')).toBeLessThan(streams / 2);
    await client.close();
    await expect.poll(() => calls.at(-1), patience).toBe('last');
    await expect.poll(() => server.transport.calls, patience).toBe(0);
    calls = [];
  }
});

test('a connection that closes while its streams wait leaves no state behind, and others are served', async () => {
  const socket = await open();
  socket.write(burst(streams, '/t.T/Watched', 'x'));
  await expect.poll(() => calls.length, patience).toBeGreaterThan(0);
  socket.destroy();
  const client = new RawClient(server.port);
  const { trailers } = await client.call({ path: '/t.T/Noted', chunks: [frameMessage(Buffer.from('other'))] });
  expect(trailers['grpc-status']).toBe('0');
  await client.close();
});

test('every call of a client with many more calls than begin in a turn is answered', async () => {
  const session = connectHttp2(`http://127.0.0.1:${server.port}`);
  const answers = Array.from({ length: streams }, () => {
    const stream = session.request({ ':method': 'POST', ':path': '/t.T/Noted', 'content-type': 'application/grpc' });
    stream.resume();
    stream.end(frameMessage(Buffer.alloc(2000)));
    return new Promise((resolve) => stream.on('trailers', (trailers) => resolve(trailers['grpc-status'])));
  });
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['0']));
  session.close();
});

test('connections are read for a limited time in a turn, and each of them has its turn', async () => {
  const [count, spinMs, readSliceMs] = [60, 3, 6];
  let most = 0;
  let seen = 0;
  const spin: MethodHandler = {
    kind: 'unary',
    handle: (request) => {
      const untilMs = performance.now() + spinMs;
      while (performance.now() < untilMs);
      calls.push(request.toString());
      return echo(request);
    },
  };
  await server.transport.close({ graceMs: 0 });
  server = await startTestServer({ '/t.T/Spin': spin }, { readSliceMs });
  const clients = await Promise.all(Array.from({ length: count }, open));
  await expect.poll(() => server.transport.connections, patience).toBe(count);
  let isCounting = true;
  const tick = (): void => {
    most = Math.max(most, calls.length - seen);
    seen = calls.length;
    if (isCounting) setImmediate(tick);
  };
  tick();
  for (const [at, client] of clients.entries()) client.write(burst(1, '/t.T/Spin', String(at)));
  await expect.poll(() => calls.length, patience).toBe(count);
  isCounting = false;
  expect(new Set(calls).size).toBe(count);
  // In a turn those that waited go on for 5 ms, and the others are read for their slice; one more is begun in each.
  expect(most).toBeLessThanOrEqual(2 * (Math.ceil(5 / spinMs) + Math.ceil(readSliceMs / spinMs) + 2));
});
