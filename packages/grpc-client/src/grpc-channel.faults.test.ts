import { once } from 'node:events';
import { constants, createServer as createHttp2Server, type Http2Session } from 'node:http2';
import { createServer as createTcpServer, type Server } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { GrpcCode, type GrpcCallError } from './grpc-call-error.ts';
import { GrpcChannel } from './grpc-channel.ts';
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

describe('hostile servers and addresses', () => {
  const goaway = (lastStreamId: number, code: number): Buffer => {
    const frame = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    frame.writeUInt32BE(lastStreamId, 9);
    frame.writeUInt32BE(code, 13);
    return frame;
  };

  /** Sends its SETTINGS, and `answer` once a call has arrived. */
  async function framesOf(answer: Buffer): Promise<string> {
    const server = createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
      let got = '';
      socket.on('data', (bytes) => {
        got += bytes.toString('latin1');
        if (got.includes('the request')) socket.write(answer);
      });
    });
    return listening(server);
  }

  async function outcomeOf(address: string): Promise<GrpcCallError> {
    const channel = channelTo(address);
    await channel.connect(5_000);
    return failureOf(channel.unary('/t/Echo', Buffer.from('the request'), 5_000).reply);
  }

  test('the end of a connection does not tell the outcome of the calls that had begun', async () => {
    const refusedStream = constants.NGHTTP2_REFUSED_STREAM;
    expect(await outcomeOf(await framesOf(goaway(1, refusedStream)))).toMatchObject({ wasSent: true });
    expect(await outcomeOf(await framesOf(goaway(0, 0)))).toMatchObject({ wasSent: false });
  });

  test('a reply is valid even if it arrives before the request was read', async () => {
    for (const isReset of [true, false]) {
      const address = await http2Server((stream) => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
        stream.on('wantTrailers', () => {
          stream.sendTrailers({ 'grpc-status': '0' });
          if (isReset) setImmediate(() => stream.close(constants.NGHTTP2_NO_ERROR));
        });
        stream.end(Buffer.from([0, 0, 0, 0, 1, 65]));
      });
      const channel = channelTo(address);
      await channel.connect(5_000);
      const { reply } = channel.unary('/t/Echo', Buffer.alloc(5 * maxMessageBytes), 2_000);
      expect((await reply).toString()).toBe('A');
    }
  });

  test('a status that is no number, and half a message, are no success', async () => {
    for (const [status, bytes] of [
      ['', [0, 0, 0, 0, 0]],
      ['0x0', [0, 0, 0, 0, 0]],
      ['0', [0, 0, 0, 0, 9, 65]],
    ] as const) {
      const address = await http2Server((stream) => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }));
        stream.end(Buffer.from(bytes));
      });
      const error = await outcomeOf(address);
      expect([GrpcCode.unknown, GrpcCode.internal]).toContain(error.code);
      expect(error.details).not.toBe('the server ended the call without a reply');
    }
  });

  test('an address that is none, and certificates that are none, are a problem and no crash', async () => {
    const nowhere = channelTo('1.2.3.4.5:2379');
    expect(await nowhere.connect(5_000)).toBe(false);
    expect(nowhere.problem).toBe('Invalid URL');
    const pem = Buffer.from('no certificate');
    const tls = { cert: pem, key: pem };
    const timing = { maxMessageBytes, keepAliveIntervalMs: 60_000, keepAliveTimeoutMs: 60_000 };
    const uncertified = new GrpcChannel({ address: '127.0.0.1:1', tls, ...timing });
    expect(await uncertified.connect(5_000)).toBe(false);
    expect(uncertified.problem).toMatch(/no start line/);
  });
});

describe('a channel with more than one connection', () => {
  test('ends the calls of all when it is closed, and the attempt to connect', async () => {
    for (const leave of ['reconnect', 'goaway'] as const) {
      let session: Http2Session | undefined;
      const address = await http2Server((stream) => (session = stream.session));
      const channel = channelTo(address);
      await channel.connect(5_000);
      const { reply } = channel.unary('/t/Never', Buffer.alloc(0), 60_000);
      await vi.waitFor(() => expect(session).toBeDefined());
      if (leave === 'reconnect') channel.reconnect();
      else session?.close();
      channel.close();
      expect((await failureOf(reply)).code).toBe(GrpcCode.unavailable);
    }
    const silent = channelTo(await listening(createTcpServer()));
    const attempt = silent.connect(60_000);
    silent.close();
    expect(await attempt).toBe(false);
    expect(silent.problem).toBe('the channel is closed');
  });

  test('asks none for a sign of life that has no calls, while another has', async () => {
    let connections = 0;
    const pinged: number[] = [];
    const server = createHttp2Server();
    server.on('session', (session) => {
      const at = (connections += 1);
      session.on('ping', () => pinged.push(at));
    });
    server.on('stream', (stream) => stream.on('error', () => {}));
    const channel = channelTo(await listening(server as unknown as Server), { intervalMs: 10, timeoutMs: 5_000 });
    await channel.connect(5_000);
    const call = channel.stream('/t/Never');
    call.on('error', () => {});
    channel.reconnect();
    expect(await channel.connect(5_000)).toBe(true);
    await vi.waitFor(() => expect(pinged.filter((at) => at === 1).length).toBeGreaterThan(5));
    expect(pinged).not.toContain(2);
  });

  test('takes another before the ids for calls are used up', async () => {
    const sessions = new Set<unknown>();
    const address = await http2Server((stream) => {
      sessions.add(stream.session);
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(Buffer.alloc(5));
    });
    const timing = { maxMessageBytes, keepAliveIntervalMs: 60_000, keepAliveTimeoutMs: 60_000 };
    const channel = new GrpcChannel({ address, maxCallsPerConnection: 3, ...timing });
    endings.push(() => channel.close());
    for (let call = 0; call < 9; call += 1) {
      expect(await channel.connect(5_000)).toBe(true);
      await channel.unary('/t/Echo', Buffer.alloc(0), 5_000).reply;
    }
    expect(sessions.size).toBe(3);
  });
});

test('a connection that was left with calls on it is given up as well when it gives no sign of life', async () => {
  let session: Http2Session | undefined;
  const address = await http2Server((stream) => (session = stream.session));
  const { proxied, silence } = await silenceable(address);
  for (const leave of ['reconnect', 'goaway'] as const) {
    const channel = channelTo(leave === 'reconnect' ? proxied : address, { intervalMs: 50, timeoutMs: 50 });
    expect(await channel.connect(5_000)).toBe(true);
    session = undefined;
    const call = channel.stream('/t/Never');
    await vi.waitFor(() => expect(session).toBeDefined());
    const isOver = once(call, 'close').catch((error: unknown) => error);
    if (leave === 'reconnect') {
      channel.reconnect();
      silence();
    } else session!.close();
    expect(await isOver).toMatchObject({ wasSent: true, code: GrpcCode.unavailable });
  }
});
