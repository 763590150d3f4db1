import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { fromBinary, toBinary, create } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { afterEach, describe, expect, test } from 'vitest';
import { GrpcCode, GrpcStatus, type TransportLimits } from '@tenure/grpc-server';
import { deferred } from '@tenure/test-support';
import type { Call, DuplexCall, MethodHandler } from '../transport/transport.ts';
import { serveGateway } from './testing/serve-gateway.ts';

// Reason for length: the three kinds of call, and the hostile clients of each, share one server and its clients.

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const put = '/etcdserverpb.KV/Put';
const snapshot = '/etcdserverpb.Maintenance/Snapshot';
const watch = '/etcdserverpb.Watch/Watch';

/** The port of a transport with these methods at the gateway. */
async function serve(
  routes: Readonly<Record<string, MethodHandler>>,
  limits: Partial<TransportLimits> = {},
  cors: readonly string[] = [],
): Promise<number> {
  const { port, close } = await serveGateway({ routes, limits, cors });
  cleanups.push(close);
  return port;
}

function framed(bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.alloc(5), bytes]);
}

/** Answers with the value of the request as that of the previous one. */
const echoValue: MethodHandler = {
  kind: 'unary',
  handle: (request) => {
    const { value } = fromBinary(etcdserverpb.PutRequestSchema, request);
    return framed(
      toBinary(etcdserverpb.PutResponseSchema, create(etcdserverpb.PutResponseSchema, { prevKv: { value } })),
    );
  },
};

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

async function post(port: number, path: string, body: string, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    body,
    headers,
    redirect: 'manual',
  });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

/** A POST whose body is written by the test; the response, when it begins. */
async function openPost(
  port: number,
  path: string,
): Promise<{
  readonly body: (text: string) => void;
  readonly end: () => void;
  readonly response: Promise<IncomingMessage>;
}> {
  const request = httpRequest({ port, host: '127.0.0.1', path, method: 'POST' });
  request.on('error', () => {});
  request.flushHeaders();
  cleanups.push(() => request.destroy());
  const response = once(request, 'response').then(([answer]) => answer as IncomingMessage);
  response.catch(() => {});
  return { body: (text) => request.write(text), end: () => request.end(), response };
}

async function nextChunk(response: IncomingMessage): Promise<string> {
  const [chunk] = (await once(response, 'data')) as [Buffer];
  return chunk.toString();
}

describe('a unary method', () => {
  test('is called with the message of the JSON, and its reply is JSON', async () => {
    const port = await serve({ [put]: echoValue });
    const { status, headers, body } = await post(port, '/v3/kv/put', '{"key":"YQ==","value":"Yg=="}');
    expect([status, body]).toEqual([200, '{"prev_kv":{"value":"Yg=="}}']);
    expect(headers.get('content-type')).toBe('application/json');
    expect((await post(port, '/v3beta/kv/put?x=1', '')).body).toBe('{"prev_kv":{}}');
  });

  test('is served over HTTP/2 as well, beside gRPC on one connection', async () => {
    const port = await serve({ [put]: echoValue });
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    cleanups.push(() => session.destroy());
    const stream = session.request({ ':method': 'POST', ':path': '/v3/kv/put' });
    stream.end('{"value":"Yg=="}');
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    expect(headers[':status']).toBe(200);
    expect(Buffer.concat(await stream.toArray()).toString()).toBe('{"prev_kv":{"value":"Yg=="}}');
  });

  test('gets the token and the deadline of the headers, and no name from the connection', async () => {
    let seen: Call | undefined;
    const handle = (_request: Buffer, call: Call): Buffer => {
      seen = call;
      return framed(Buffer.alloc(0));
    };
    const port = await serve({ [put]: { kind: 'unary', handle } });
    await post(port, '/v3/kv/put', '{}', {
      authorization: 'token',
      'grpc-timeout': '50S',
      'grpc-metadata-hasleader': 'true',
    });
    expect(seen?.metadata).toEqual({ authorization: 'token', hasleader: 'true' });
    expect(seen?.deadlineMs).toBeGreaterThan(performance.now() + 40_000);
    expect(seen?.connection).toEqual({ remoteAddress: '127.0.0.1', commonName: undefined });
  });

  test('a refusal is JSON with the HTTP status of its code, and says how to log in', async () => {
    const handle = (): Buffer => {
      throw new GrpcStatus(GrpcCode.unauthenticated, 'no "token"');
    };
    const port = await serve({ [put]: { kind: 'unary', handle } });
    const { status, headers, body } = await post(port, '/v3/kv/put', '{}');
    expect([status, body]).toEqual([401, String.raw`{"code":16,"message":"no \"token\""}`]);
    expect(headers.get('www-authenticate')).toBe('no "token"');
  });

  test('an error of the handler keeps its text', async () => {
    const handle = (): Promise<Buffer> => Promise.reject(new Error('secret'));
    const port = await serve({ [put]: { kind: 'unary', handle } });
    expect(await post(port, '/v3/kv/put', '{}')).toMatchObject({
      status: 500,
      body: '{"code":13,"message":"internal error"}',
    });
  });

  test('is cancelled when its client goes away', async () => {
    const called = deferred();
    const cancelled = deferred();
    const handle = (_request: Buffer, call: Call): Promise<Buffer> => {
      call.signal.addEventListener('abort', () => cancelled.resolve());
      called.resolve();
      return new Promise(() => {});
    };
    const port = await serve({ [put]: { kind: 'unary', handle } });
    const socket = connect(port, '127.0.0.1');
    socket.write('POST /v3/kv/put HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}');
    await called.promise;
    socket.destroy();
    await expect(cancelled.promise).resolves.toBe(undefined);
  });

  test('its deadline answers 504 while its handler goes on', async () => {
    const port = await serve({ [put]: { kind: 'unary', handle: () => new Promise<Buffer>(() => {}) } });
    const { status, body } = await post(port, '/v3/kv/put', '{}', { 'grpc-timeout': '20m' });
    expect([status, JSON.parse(body)]).toMatchObject([504, { code: 4 }]);
  });
});

describe('what reaches no method', () => {
  test.each([
    ['/v3/kv/nothing', 404, '{"code":5,"message":"Not Found"}'],
    ['/v3/', 404, '{"code":5,"message":"Not Found"}'],
    // No service for it is there.
    ['/v3/kv/range', 404, '{"code":5,"message":"Not Found"}'],
    ['/v3', 307, ''],
    ['/v3/kv//put', 307, ''],
  ])('%s', async (path, status, body) => {
    expect(await post(await serve({ [put]: echoValue }), path, '{}')).toMatchObject({ status, body });
  });

  test('another HTTP method', async () => {
    const port = await serve({ [put]: echoValue });
    const response = await fetch(`http://127.0.0.1:${port}/v3/kv/put`);
    expect([response.status, await response.text()]).toEqual([501, '{"code":12,"message":"Method Not Allowed"}']);
  });

  test('a timeout that is none', async () => {
    const refused = await post(await serve({ [put]: echoValue }), '/v3/kv/put', '{}', { 'grpc-timeout': 'x' });
    expect(refused).toMatchObject({ status: 400, body: '{"code":3,"message":"invalid grpc-timeout: x"}' });
  });

  test('a page of an origin that is not in --cors: nothing is called', async () => {
    let calls = 0;
    const handle = (): Buffer => {
      calls += 1;
      return framed(Buffer.alloc(0));
    };
    const port = await serve({ [put]: { kind: 'unary', handle } }, {}, ['https://a.example']);
    const foreign = { origin: 'https://evil.example', 'content-type': 'text/plain' };
    expect((await post(port, '/v3/kv/put', '{"key":"YQ=="}', foreign)).status).toBe(403);
    expect(calls).toBe(0);
    const { status, headers } = await post(port, '/v3/kv/put', '{"key":"YQ=="}', { origin: 'https://a.example' });
    expect([status, headers.get('access-control-allow-origin'), calls]).toEqual([200, 'https://a.example', 1]);
  });
});

describe('limits', () => {
  test('a message larger than the largest has the text of gRPC, and a longer body is not read to its end', async () => {
    const port = await serve({ [put]: echoValue }, { maxReceiveBytes: 1000 });
    const value = Buffer.alloc(1000).toString('base64');
    expect(await post(port, '/v3/kv/put', `{"value":"${value}"}`)).toMatchObject({
      status: 429,
      body: '{"code":8,"message":"grpc: received message larger than max (1003 vs. 1000)"}',
    });
    const { body, response } = await openPost(port, '/v3/kv/put');
    body(`{"x":"${'a'.repeat(400_000)}`);
    expect((await response).statusCode).toBe(429);
  });

  test('a body that does not arrive in time is refused, and the connection ends', async () => {
    const port = await serve({ [put]: echoValue }, { requestTimeoutMs: 50, sweepIntervalMs: 20 });
    const { body, response } = await openPost(port, '/v3/kv/put');
    body('{"value":');
    const answer = await response;
    expect([answer.statusCode, answer.headers.connection]).toEqual([504, 'close']);
    answer.resume();
    await once(answer, 'close');
  });

  test('of pipelined requests one body is read at a time, and all are answered in order', async () => {
    const port = await serve({ [put]: echoValue });
    const socket = connect(port, '127.0.0.1');
    cleanups.push(() => socket.destroy());
    const one = (value: string): string =>
      `POST /v3/kv/put HTTP/1.1\r\nhost: x\r\ncontent-length: 16\r\n\r\n{"value":"${value}"}`;
    socket.write(`${one('YQ==')}${one('Yg==')}GET /version HTTP/1.1\r\nhost: x\r\n\r\n${one('Yw==')}`);
    const read = await textUntil(socket, 'Yw==');
    expect([...read.matchAll(/"value":"(..)|(page)/g)].map(([, value, page]) => value ?? page)).toEqual([
      'YQ',
      'Yg',
      'page',
      'Yw',
    ]);
  });

  test('many bodies that stay unfinished on one connection over HTTP/2 are refused by their bytes', async () => {
    const limits = { maxConnectionRequestBytes: 400_000, maxTotalRequestBytes: 1_000_000 };
    const port = await serve({ [put]: echoValue }, limits);
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    cleanups.push(() => session.destroy());
    const statuses: Promise<number>[] = [];
    for (let i = 0; i < 20; i++) {
      const stream = session.request({ ':method': 'POST', ':path': '/v3/kv/put' });
      stream.on('error', () => {});
      stream.write(`{"value":"${'A'.repeat(60_000)}`);
      statuses.push(once(stream, 'response').then(([headers]) => (headers as Record<string, number>)[':status'] ?? 0));
      if (i === 19) setImmediate(() => stream.end('!"}'));
    }
    // The last of them ends; it is refused because the others hold what there is.
    expect(await statuses[19]).toBe(429);
  });
});

/** What the socket receives from now on, up to this text. */
async function textUntil(socket: Socket, last: string): Promise<string> {
  let text = '';
  while (!text.includes(last)) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    text += chunk.toString();
  }
  return text;
}

describe('a stream of the server', () => {
  const blob = (bytes: Buffer): Buffer =>
    framed(toBinary(etcdserverpb.SnapshotResponseSchema, create(etcdserverpb.SnapshotResponseSchema, { blob: bytes })));

  test('is a line for each message, and an error is the last', async () => {
    const port = await serve({
      [snapshot]: {
        kind: 'serverStream',
        handle: async (_request, _call, send) => {
          await send(blob(Buffer.from('a')));
          await send(blob(Buffer.from('b')));
          throw new GrpcStatus(GrpcCode.unavailable, 'over');
        },
      },
    });
    const { status, body } = await post(port, '/v3/maintenance/snapshot', '{}');
    expect(status).toBe(200);
    expect(body).toBe(
      '{"result":{"blob":"YQ=="}}\n{"result":{"blob":"Yg=="}}\n{"error":{"code":14,"message":"over"}}\n',
    );
  });

  test('waits for a reader that reads nothing, and is destroyed when that takes too long', async () => {
    let sent = 0;
    const over = deferred();
    const port = await serve(
      {
        [snapshot]: {
          kind: 'serverStream',
          handle: async (_request, call, send) => {
            call.signal.addEventListener('abort', () => over.resolve());
            for (; sent < 10_000; sent++) await send(blob(Buffer.alloc(64 * 1024)));
          },
        },
      },
      { stalledReplyTimeoutMs: 100, sweepIntervalMs: 20 },
    );
    const socket = connect(port, '127.0.0.1');
    cleanups.push(() => socket.destroy());
    socket.on('error', () => {});
    socket.pause();
    socket.write('POST /v3/maintenance/snapshot HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}');
    await over.promise;
    // What the sockets of both sides take, and no more.
    expect(sent).toBeLessThan(500);
  });
});

describe('a stream of both sides', () => {
  /** Answers each message with a line, and the end of the requests with the end of the call. */
  const echoWatch = (note: (call: DuplexCall) => void = () => {}): MethodHandler & { kind: 'bidi' } => ({
    kind: 'bidi',
    handle: (call) => {
      note(call);
      call.onMessage = (message) => {
        const { requestUnion } = fromBinary(etcdserverpb.WatchRequestSchema, message);
        const watchId = requestUnion.case === 'createRequest' ? requestUnion.value.watchId : 0n;
        const reply = create(etcdserverpb.WatchResponseSchema, { watchId });
        call.send(framed(toBinary(etcdserverpb.WatchResponseSchema, reply)));
      };
      call.onHalfClose = () => call.end(new GrpcStatus(GrpcCode.ok, ''));
    },
  });
  const asked = (id: number): string => `{"create_request":{"watch_id":"${id}"}}`;

  test('answers each message of the body while the body is open', async () => {
    const port = await serve({ [watch]: echoWatch() });
    const { body, end, response } = await openPost(port, '/v3/watch');
    body(asked(1));
    const answer = await response;
    expect(await nextChunk(answer)).toBe('{"result":{"watch_id":"1"}}\n');
    body(asked(2).slice(0, 20));
    body(`${asked(2).slice(20)}\n`);
    expect(await nextChunk(answer)).toBe('{"result":{"watch_id":"2"}}\n');
    end();
    answer.resume();
    await once(answer, 'end');
  });

  test('several messages may come at once, and a body that is not JSON ends the requests alone', async () => {
    const port = await serve({ [watch]: echoWatch() });
    const { status, body } = await post(port, '/v3/watch', `${asked(1)}${asked(2)}x${asked(3)}`);
    expect([status, body]).toEqual([200, '{"result":{"watch_id":"1"}}\n{"result":{"watch_id":"2"}}\n']);
  });

  test('delivers thousands of messages of one chunk over several turns, in order', async () => {
    let inOneTurn = 0;
    let most = 0;
    const port = await serve({
      [watch]: echoWatch((call) => {
        setImmediate(function turn() {
          inOneTurn = 0;
          if (!call.signal.aborted) setImmediate(turn);
        });
        queueMicrotask(() => {
          const deliver = call.onMessage;
          call.onMessage = (message) => {
            inOneTurn += 1;
            most = Math.max(most, inOneTurn);
            deliver(message);
          };
        });
      }),
    });
    const ids = Array.from({ length: 1500 }, (_, id) => id + 1);
    const { body } = await post(port, '/v3/watch', ids.map(asked).join(''));
    expect([...body.matchAll(/"watch_id":"(\d+)"/g)].map(([, id]) => Number(id))).toEqual(ids);
    expect([most > 0, most <= 256]).toEqual([true, true]);
  });

  test('whose call ends before its body leaves the connection usable, but not to a body without an end', async () => {
    const port = await serve({ [watch]: echoWatch(), [put]: echoValue }, { sweepIntervalMs: 50 });
    const socket = connect(port, '127.0.0.1');
    cleanups.push(() => socket.destroy());
    socket.write('POST /v3/watch HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n[]');
    await textUntil(socket, '0\r\n\r\n');
    socket.write('{}POST /v3/kv/put HTTP/1.1\r\nhost: x\r\ncontent-length: 16\r\n\r\n{"value":"Yg=="}');
    expect(await textUntil(socket, 'Yg==')).toContain('200 OK');
    socket.write('POST /v3/watch HTTP/1.1\r\nhost: x\r\ncontent-length: 9999\r\n\r\n[]');
    await textUntil(socket, '0\r\n\r\n');
    await once(socket, 'close');
  });

  test('is cancelled when its client goes away', async () => {
    const closed = deferred();
    const port = await serve({
      [watch]: echoWatch((call) => {
        call.onClose = () => closed.resolve();
      }),
    });
    const socket = connect(port, '127.0.0.1');
    socket.write('POST /v3/watch HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n');
    // A connection that ends in the middle of a message.
    setImmediate(() => socket.destroy());
    await expect(closed.promise).resolves.toBe(undefined);
  });

  test('a paused call reads no more of its body, and goes on where it stopped', async () => {
    let held: DuplexCall | undefined;
    const paused = deferred();
    const port = await serve({
      [watch]: {
        kind: 'bidi',
        handle: (call) => {
          held = call;
          echoWatch().handle(call);
          const answer = call.onMessage;
          call.onMessage = (message) => {
            call.pause();
            answer(message);
            paused.resolve();
          };
        },
      },
    });
    const { body, response } = await openPost(port, '/v3/watch');
    body(`${asked(1)}${asked(2)}`);
    await paused.promise;
    const answer = await response;
    expect(await nextChunk(answer)).toBe('{"result":{"watch_id":"1"}}\n');
    held?.resume();
    expect(await nextChunk(answer)).toBe('{"result":{"watch_id":"2"}}\n');
  });

  test('a message that is too large ends the call with its last line', async () => {
    const port = await serve({ [watch]: echoWatch() }, { maxReceiveBytes: 100 });
    const key = Buffer.alloc(200).toString('base64');
    const { body } = await post(port, '/v3/watch', `${asked(1)}{"create_request":{"key":"${key}"}}`);
    const [first, last = ''] = body.trim().split('\n');
    expect(first).toBe('{"result":{"watch_id":"1"}}');
    expect(JSON.parse(last)).toMatchObject({ error: { code: 8 } });
  });

  test('a reader that reads nothing holds up the sender', async () => {
    let hadRoom = true;
    let sent = 0;
    const full = deferred();
    const drained = deferred();
    const port = await serve(
      {
        [watch]: {
          kind: 'bidi',
          handle: (call) => {
            const message = toBinary(
              etcdserverpb.WatchResponseSchema,
              create(etcdserverpb.WatchResponseSchema, { cancelReason: 'x'.repeat(60_000) }),
            );
            call.onMessage = () => {
              for (; hadRoom && sent < 10_000; sent++) hadRoom = call.send(framed(message));
              full.resolve();
            };
            call.onDrain = () => drained.resolve();
          },
        },
      },
      { maxStreamBufferedBytes: 200_000 },
    );
    const socket = connect(port, '127.0.0.1');
    cleanups.push(() => socket.destroy());
    socket.pause();
    socket.write('POST /v3/watch HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}');
    await full.promise;
    expect([hadRoom, sent < 200]).toEqual([false, true]);
    socket.resume();
    await drained.promise;
  });
});
