import { once } from 'node:events';
import { constants } from 'node:http2';
import { createServer as createTcpServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import { GrpcCode } from './grpc-call-error.ts';
import {
  channelTo,
  endAll,
  endings,
  failureOf,
  http2Server,
  listening,
  maxMessageBytes,
  silenceable,
} from './testing/channel-servers.ts';

afterEach(endAll);

/** A gRPC server from another implementation. */
async function foreignServer(): Promise<string> {
  const bytes = (one: Buffer): Buffer => one;
  const method = { requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes };
  const kinds = { requestStream: false, responseStream: false, responseDeserialize: bytes };
  const server = new grpc.Server();
  server.addService(
    {
      echo: { ...method, ...kinds, path: '/t/Echo' },
      refuse: { ...method, ...kinds, path: '/t/Refuse' },
      never: { ...method, ...kinds, path: '/t/Never' },
      both: { ...method, ...kinds, requestStream: true, responseStream: true, path: '/t/Both' },
    },
    {
      echo: (call: grpc.ServerUnaryCall<Buffer, Buffer>, done: grpc.sendUnaryData<Buffer>) => {
        const [name] = call.metadata.get('name');
        done(null, name === undefined ? call.request : Buffer.concat([call.request, Buffer.from(name)]));
      },
      refuse: (_call: grpc.ServerUnaryCall<Buffer, Buffer>, done: grpc.sendUnaryData<Buffer>) =>
        done({ code: 9, details: 'größer als 100%' }),
      never: () => {},
      both: (call: grpc.ServerDuplexStream<Buffer, Buffer>) => {
        call.on('data', (message: Buffer) => call.write(message));
        call.on('end', () => call.end());
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  endings.push(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}

describe('a call', () => {
  test('carries bytes and metadata to a server that is not ours, and back', async () => {
    const channel = channelTo(await foreignServer());
    expect(await channel.connect(5_000)).toBe(true);
    const large = Buffer.alloc(maxMessageBytes, 'x');
    const replies = [Buffer.alloc(0), Buffer.from('a'), large].map(
      (body) => channel.unary('/t/Echo', body, 5_000).reply,
    );
    expect((await Promise.all(replies)).map(({ length }) => length)).toEqual([0, 1, maxMessageBytes]);
    const named = await channel.unary('/t/Echo', Buffer.from('a'), 5_000, { name: 'b' }).reply;
    expect(named.toString()).toBe('ab');
  });

  test('rejects with the status and the words of the server', async () => {
    const channel = channelTo(await foreignServer());
    await channel.connect(5_000);
    const refused = await failureOf(channel.unary('/t/Refuse', Buffer.alloc(0), 5_000).reply);
    expect(refused).toMatchObject({ code: 9, details: 'größer als 100%', wasSent: true });
    const unknown = await failureOf(channel.unary('/t/Nothing', Buffer.alloc(0), 5_000).reply);
    expect(unknown.code).toBe(GrpcCode.unimplemented);
  });

  test('ends at its deadline, when it is cancelled, and with a message that is too large', async () => {
    const channel = channelTo(await foreignServer());
    await channel.connect(5_000);
    const late = await failureOf(channel.unary('/t/Never', Buffer.alloc(0), 20).reply);
    expect(late.code).toBe(GrpcCode.deadlineExceeded);
    const call = channel.unary('/t/Never', Buffer.alloc(0), 5_000);
    call.cancel();
    expect((await failureOf(call.reply)).code).toBe(GrpcCode.cancelled);
    const large = channel.unary('/t/Echo', Buffer.alloc(maxMessageBytes + 1), 5_000);
    expect((await failureOf(large.reply)).code).toBe(GrpcCode.resourceExhausted);
    expect((await channel.unary('/t/Echo', Buffer.from('a'), 5_000).reply).length).toBe(1);
  });

  test('a stream returns complete messages in order, and applies back-pressure when it is not read', async () => {
    const channel = channelTo(await foreignServer());
    await channel.connect(5_000);
    const stream = channel.stream('/t/Both');
    for (let at = 0; at < 500; at += 1) {
      const message = Buffer.alloc(20_000);
      message.writeUInt32BE(at);
      stream.write(message);
    }
    stream.end();
    let next = 0;
    for await (const message of stream as AsyncIterable<Buffer>) {
      expect([message.length, message.readUInt32BE()]).toEqual([20_000, next]);
      next += 1;
      expect(stream.readableLength).toBeLessThan(200);
    }
    expect(next).toBe(500);
  });
});

test('a stream that the server ends returns the earlier messages, and its status', async () => {
  const address = await http2Server((stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '6', 'grpc-message': 'taken', why: 'so' }));
    for (const text of ['a', 'b', 'c']) stream.write(Buffer.concat([Buffer.from([0, 0, 0, 0, 1]), Buffer.from(text)]));
    stream.end();
  });
  const channel = channelTo(address);
  await channel.connect(5_000);
  for (const pauseMs of [0, 20]) {
    // This side does not end the stream.
    const stream = channel.stream('/t/Both');
    const messages: string[] = [];
    const reading = (async () => {
      for await (const message of stream as AsyncIterable<Buffer>) {
        messages.push(message.toString());
        if (pauseMs > 0) await delay(pauseMs);
      }
    })();
    expect(await failureOf(reading)).toMatchObject({ code: 6, details: 'taken', trailers: { why: 'so' } });
    expect(messages).toEqual(['a', 'b', 'c']);
  }
});

describe('whether a call was sent', () => {
  test('it was not where nothing listens', async () => {
    const gone = createTcpServer();
    const address = await listening(gone);
    gone.close();
    await once(gone, 'close');
    const channel = channelTo(address);
    expect(await channel.connect(5_000)).toBe(false);
    expect(channel.problem).toBe(`connect ECONNREFUSED ${address}`);
    expect(() => channel.unary('/t/Echo', Buffer.alloc(0), 5_000)).toThrow(
      expect.objectContaining({ wasSent: false, code: GrpcCode.unavailable }),
    );
  });

  test('it was not where a socket is open and nothing answers', async () => {
    const channel = channelTo(await listening(createTcpServer()));
    expect(await channel.connect(50)).toBe(false);
    expect(channel.problem).toBe('it does not answer');
  });

  test('the reason of a failed attempt stays when the next one is cut short', async () => {
    const server = createTcpServer();
    server.once('connection', (socket) => socket.end('SSH-2.0-OpenSSH\r\n'));
    const channel = channelTo(await listening(server));
    expect(await channel.connect(5_000)).toBe(false);
    expect(channel.problem).toBe('Protocol error');
    // The second attempt gets no answer within the time that its caller has left.
    expect(await channel.connect(1)).toBe(false);
    expect(channel.problem).toBe('Protocol error');
  });

  test('it was not where the server says that it has not begun', async () => {
    const address = await http2Server((stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM));
    const channel = channelTo(address);
    await channel.connect(5_000);
    const error = await failureOf(channel.unary('/t/Echo', Buffer.alloc(0), 5_000).reply);
    expect(error).toMatchObject({ wasSent: false, code: GrpcCode.unavailable });
  });

  test('it may have been where the connection broke, and the next call has another connection', async () => {
    let calls = 0;
    const address = await http2Server((stream) => {
      calls += 1;
      if (calls === 1) return stream.session?.destroy();
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(Buffer.alloc(5));
    });
    const channel = channelTo(address);
    await channel.connect(5_000);
    const error = await failureOf(channel.unary('/t/Echo', Buffer.alloc(0), 5_000).reply);
    expect(error).toMatchObject({ wasSent: true, code: GrpcCode.unavailable });
    expect(await channel.connect(5_000)).toBe(true);
    expect((await channel.unary('/t/Echo', Buffer.alloc(0), 5_000).reply).length).toBe(0);
  });

  test('it may have been where a proxy answers for the server', async () => {
    const address = await http2Server((stream) => {
      stream.respond({ ':status': 503 });
      stream.end('busy');
    });
    const channel = channelTo(address);
    await channel.connect(5_000);
    const error = await failureOf(channel.unary('/t/Echo', Buffer.alloc(0), 5_000).reply);
    expect(error).toMatchObject({
      code: GrpcCode.unavailable,
      details: 'Received HTTP status code 503',
      wasSent: true,
    });
  });
});

test('a connection that gives no sign of life is given up', async () => {
  const { proxied, silence } = await silenceable(await foreignServer());
  const channel = channelTo(proxied, { intervalMs: 50, timeoutMs: 50 });
  expect(await channel.connect(5_000)).toBe(true);
  const call = channel.unary('/t/Never', Buffer.alloc(0), 60_000);
  silence();
  expect(await failureOf(call.reply)).toMatchObject({ wasSent: true, code: GrpcCode.unavailable });
});

test('a server of another protocol is distinguished from one that is down', async () => {
  const channel = channelTo(await listening(createTcpServer((socket) => socket.end('SSH-2.0-OpenSSH\r\n'))));
  expect(await channel.connect(5_000)).toBe(false);
  expect(channel.problem).toBe('Protocol error');
});
