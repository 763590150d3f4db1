import { Buffer } from 'node:buffer';
import { request as httpRequest } from 'node:http';
import { frameMessage, RawClient } from '@tenure/test-support';
import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import { GrpcCode, GrpcStatus } from '../calls/grpc-status.ts';
import type { GrpcServer } from './grpc-server.ts';
import { deferred, echo, startTestServer } from '@tenure/test-support';
import type { CallerConnection, DuplexCall, MethodHandler } from '../calls/call.ts';

const raw = (value: Buffer): Buffer => value;

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(
  routes: Record<string, MethodHandler>,
): Promise<{ transport: GrpcServer; address: string; port: number }> {
  const { transport, port } = await startTestServer(routes);
  cleanups.push(() => transport.close({ graceMs: 200 }));
  return { transport, address: `127.0.0.1:${port}`, port };
}

function connect(address: string, options: grpc.ClientOptions = {}): grpc.Client {
  const client = new grpc.Client(address, grpc.credentials.createInsecure(), options);
  cleanups.push(() => client.close());
  return client;
}

function unary(
  client: grpc.Client,
  path: string,
  request: Buffer,
  options: grpc.CallOptions = {},
): Promise<Buffer | grpc.ServiceError> {
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, raw, raw, request, options, (error, reply) => resolve(error ?? (reply as Buffer)));
  });
}

describe('with a gRPC client', () => {
  test('a unary call is answered, synchronously or not', async () => {
    const { address } = await serve({
      '/t.T/Echo': { kind: 'unary', handle: echo },
      '/t.T/Later': { kind: 'unary', handle: async (request) => echo(request) },
    });
    const client = connect(address);
    expect(await unary(client, '/t.T/Echo', Buffer.from('now'))).toEqual(Buffer.from('now'));
    expect(await unary(client, '/t.T/Later', Buffer.from('later'))).toEqual(Buffer.from('later'));
    expect(await unary(client, '/t.T/Echo', Buffer.alloc(0))).toEqual(Buffer.alloc(0));
    const large = Buffer.alloc(1_500_000, 7);
    const echoed = await unary(client, '/t.T/Echo', large);
    expect(large.equals(echoed as Buffer)).toBe(true);
  });

  test('a refusal carries its code and its text, for any text', async () => {
    const text = 'etcdserver: 100% wrong\nключ 🔑';
    const { address } = await serve({
      '/t.T/Refuse': {
        kind: 'unary',
        handle: () => {
          throw new GrpcStatus(GrpcCode.failedPrecondition, text);
        },
      },
    });
    const error = await unary(connect(address), '/t.T/Refuse', Buffer.from('x'));
    expect(error).toMatchObject({ code: 9, details: text });
  });

  test('another error of a handler becomes Internal without its text', async () => {
    const { address } = await serve({
      '/t.T/Throw': {
        kind: 'unary',
        handle: () => {
          throw new Error('secret');
        },
      },
      '/t.T/Reject': { kind: 'unary', handle: () => Promise.reject(new Error('secret')) },
    });
    const client = connect(address);
    for (const path of ['/t.T/Throw', '/t.T/Reject']) {
      expect(await unary(client, path, Buffer.from('x'))).toMatchObject({ code: 13, details: 'internal error' });
    }
  });

  test('an unknown method and an unknown service are distinguished', async () => {
    const { address } = await serve({ '/t.T/Echo': { kind: 'unary', handle: echo } });
    const client = connect(address);
    const method = await unary(client, '/t.T/Nope', Buffer.from('x'));
    expect(method).toMatchObject({ code: 12, details: 'unknown method Nope for service t.T' });
    const service = await unary(client, '/u.U/Nope', Buffer.from('x'));
    expect(service).toMatchObject({ code: 12, details: 'unknown service u.U' });
  });

  test('the calls of different connections are distinguished', async () => {
    const clients: CallerConnection[] = [];
    const { port } = await serve({
      '/t.T/Connection': {
        kind: 'unary',
        handle: (request, call) => {
          clients.push(call.connection);
          return echo(request);
        },
      },
    });
    const [one, other] = [new RawClient(port), new RawClient(port)];
    cleanups.push(
      () => one.close(),
      () => other.close(),
    );
    for (const client of [one, other, one]) {
      await client.call({ path: '/t.T/Connection', chunks: [frameMessage(Buffer.alloc(1))] });
    }
    expect(clients.map((client) => clients.indexOf(client))).toEqual([0, 1, 0]);
    expect(clients[0]).toMatchObject({ remoteAddress: '127.0.0.1', commonName: undefined });
  });

  test('the deadline ends a call that is not answered', async () => {
    const aborted = deferred();
    const deadlines: number[] = [];
    const { port } = await serve({
      '/t.T/Never': {
        kind: 'unary',
        handle: (_request, call) => {
          deadlines.push(call.deadlineMs);
          call.signal.addEventListener('abort', aborted.resolve);
          return new Promise(() => {});
        },
      },
    });
    // A client that leaves the deadline to the server, so that the server's deadline is observed.
    const client = new RawClient(port);
    cleanups.push(() => client.close());
    const called = { path: '/t.T/Never', headers: { 'grpc-timeout': '300m' }, chunks: [frameMessage(Buffer.alloc(1))] };
    const { trailers } = await client.call(called);
    expect(trailers).toMatchObject({ 'grpc-status': '4', 'grpc-message': 'context deadline exceeded' });
    await aborted.promise;
    expect(deadlines[0]).toBeLessThanOrEqual(performance.now());
  });

  test('a server stream sends all its messages in order', async () => {
    const { address } = await serve({
      '/t.T/Count': {
        kind: 'serverStream',
        handle: async (request, _call, send) => {
          for (let i = 0; i < request.readUInt32BE(0); i++) await send(echo(Buffer.alloc(1000, i)));
        },
      },
    });
    const request = Buffer.alloc(4);
    request.writeUInt32BE(500);
    const call = connect(address).makeServerStreamRequest('/t.T/Count', raw, raw, request);
    let count = 0;
    for await (const message of call) {
      expect(Buffer.alloc(1000, count).equals(message)).toBe(true);
      count += 1;
    }
    expect(count).toBe(500);
  });

  test('a bidirectional call answers message by message, pauses, and ends as its handler says', async () => {
    const { address } = await serve({
      '/t.T/Talk': {
        kind: 'bidi',
        handle: (call: DuplexCall) => {
          call.onMessage = (message) => {
            call.send(echo(message));
            call.pause();
            setImmediate(() => call.resume());
          };
          call.onHalfClose = () => call.end(new GrpcStatus(GrpcCode.outOfRange, 'done'));
        },
      },
    });
    const call = connect(address).makeBidiStreamRequest('/t.T/Talk', raw, raw);
    const received: string[] = [];
    call.on('data', (message: Buffer) => received.push(message.toString()));
    call.on('error', () => {});
    const status = new Promise<grpc.StatusObject>((resolve) => call.on('status', resolve));
    const sent = Array.from({ length: 200 }, (_, i) => `message ${i}`);
    for (const message of sent) call.write(Buffer.from(message));
    call.end();
    expect(await status).toMatchObject({ code: 11, details: 'done' });
    expect(received).toEqual(sent);
  });

  test('cancelling a bidirectional call closes it exactly once', async () => {
    let closes = 0;
    const closed = deferred();
    const { address } = await serve({
      '/t.T/Talk': {
        kind: 'bidi',
        handle: (call) => {
          call.onMessage = (message) => void call.send(echo(message));
          call.onClose = () => {
            closes += 1;
            closed.resolve();
          };
        },
      },
    });
    const call = connect(address).makeBidiStreamRequest('/t.T/Talk', raw, raw);
    call.on('error', () => {});
    call.write(Buffer.from('x'));
    await new Promise((resolve) => call.once('data', resolve));
    call.cancel();
    await closed.promise;
    expect(closes).toBe(1);
  });
});

test('HTTP/1 is served on the same port', async () => {
  const { port } = await serve({});
  const text = await new Promise<string>((resolve, reject) => {
    httpRequest({ port, host: '127.0.0.1', path: '/health', agent: false }, (response) => {
      let body = '';
      response.on('data', (chunk) => (body += String(chunk)));
      response.on('end', () => resolve(body));
    })
      .on('error', reject)
      .end();
  });
  expect(text).toBe('GET /health');
});

test('closing lets a unary call finish, ends streams as Unavailable, and closes the port', async () => {
  const entered = deferred();
  const release = deferred();
  const { transport, address } = await serve({
    '/t.T/Slow': {
      kind: 'unary',
      handle: async (request) => {
        entered.resolve();
        await release.promise;
        return echo(request);
      },
    },
    '/t.T/Talk': { kind: 'bidi', handle: (call) => (call.onMessage = (message) => void call.send(echo(message))) },
  });
  const client = connect(address);
  const talk = client.makeBidiStreamRequest('/t.T/Talk', raw, raw);
  talk.on('error', () => {});
  const talkStatus = new Promise<grpc.StatusObject>((resolve) => talk.on('status', resolve));
  talk.write(Buffer.from('x'));
  await new Promise((resolve) => talk.once('data', resolve));
  const slow = unary(client, '/t.T/Slow', Buffer.from('slow'));
  await entered.promise;
  const closed = transport.close({ graceMs: 5000 });
  expect(await talkStatus).toMatchObject({ code: 14, details: 'the server is stopping' });
  release.resolve();
  expect(await slow).toEqual(Buffer.from('slow'));
  await closed;
  expect(transport.connections).toBe(0);
});
