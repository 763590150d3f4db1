import { connect, type Socket } from 'node:net';
import { RawClient } from '@tenure/test-support';
import { afterEach, describe, expect, test } from 'vitest';
import { deferred, startTestServer, type TestServer } from '@tenure/test-support';
import { UnreadClient } from '@tenure/test-support';
import type { HttpHandler } from './call.ts';
import type { TransportLimits } from '../limits/transport-limits.ts';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** More than the system's buffers accept for a client that does not read. */
const page = 'x'.repeat(16_000_000);
const patience = { timeout: 20_000, interval: 10 };
let server: TestServer;
let asked: string[] = [];

async function serve(onHttp: HttpHandler, limits: Partial<TransportLimits> = {}): Promise<void> {
  asked = [];
  const noted: HttpHandler = (request) => {
    asked.push(`${request.method} ${request.target}`);
    return onHttp(request);
  };
  server = await startTestServer({}, limits, noted);
  cleanups.push(() => server.transport.close({ graceMs: 50 }));
}

const answerPage: HttpHandler = async ({ target }) => ({
  status: 200,
  headers: {},
  body: target === '/page' ? page : 'well',
});

function unreadClient(): UnreadClient {
  const client = new UnreadClient(server.port);
  cleanups.push(() => client.session.destroy());
  return client;
}

function socketThatSends(text: string): Socket {
  const socket = connect(server.port, '127.0.0.1');
  cleanups.push(() => void socket.destroy());
  socket.on('error', () => {});
  socket.write(text);
  return socket;
}

const requestOf = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;

/** The response to another client also shows that the server has processed the earlier requests. */
async function expectAnswer(): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${server.port}/else`);
  expect(await response.text()).toBe('well');
}

describe('HTTP over HTTP/2', () => {
  test('counts as a call, and its unread response as a reply, until it is read or abandoned', async () => {
    await serve(answerPage);
    const client = unreadClient();
    const [first, second] = [client.get('/page'), client.get('/page')];
    await expect.poll(() => server.transport.replyBytes, patience).toBe(2 * page.length);
    expect(server.transport.calls).toBe(2);
    first.close(8);
    await expect.poll(() => server.transport.replyBytes, patience).toBe(page.length);
    let readBytes = 0;
    second.on('data', (chunk: Buffer) => (readBytes += chunk.length));
    client.read();
    await expect.poll(() => server.transport.replyBytes, patience).toBe(0);
    await expect.poll(() => readBytes, patience).toBe(page.length);
    await expect.poll(() => server.transport.calls, patience).toBe(0);
  });

  test('is refused beyond the limit of its connection, and beyond the limit of the queue', async () => {
    const entered = deferred();
    const release = deferred();
    await serve(
      async ({ target }) => {
        if (target === '/slow') {
          entered.resolve();
          await release.promise;
        }
        return { status: 200, headers: {}, body: 'well' };
      },
      { maxWaitingHttpRequests: 2 },
    );
    const client = new RawClient(server.port);
    cleanups.push(() => client.close());
    const get = (path: string) => client.call({ path, headers: { ':method': 'GET', 'content-type': 'text/plain' } });
    const slow = get('/slow');
    await entered.promise;
    // One is being answered, two are queued, and two are refused.
    const others = Array.from({ length: 4 }, () => get('/more'));
    const refused: unknown[] = [];
    for (const other of others) void other.then(({ headers }) => refused.push(headers[':status']));
    await expect.poll(() => refused, patience).toEqual([503, 503]);
    await expectAnswer();
    expect(asked).toEqual(['GET /slow', 'GET /else']);
    release.resolve();
    const served = await Promise.all([slow, ...others.slice(0, 2)]);
    expect(served.map(({ body }) => body.toString())).toEqual(['well', 'well', 'well']);
  });

  test('with unread replies up to the limit is refused without a call of the handler', async () => {
    await serve(answerPage, { maxConnectionReplyBytes: page.length });
    const client = unreadClient();
    client.get('/page');
    await expect.poll(() => server.transport.replyBytes, patience).toBe(page.length);
    const answered = new Promise((resolve) =>
      client.get('/page').on('response', (headers) => resolve(headers[':status'])),
    );
    expect(await answered).toBe(503);
    expect(asked).toEqual(['GET /page']);
  });

  test('is reset when its response is not read for too long', async () => {
    await serve(answerPage, { stalledReplyTimeoutMs: 30, sweepIntervalMs: 10 });
    unreadClient().get('/page');
    await expect.poll(() => asked.length, patience).toBe(1);
    await expect.poll(() => server.transport.calls, patience).toBe(0);
    // The bytes that HTTP/2 had handed to the socket are free when the socket is.
    await expect.poll(() => server.transport.replyBytes, patience).toBe(0);
  });

  test('a handler that fails is answered with 500 and logged, and HEAD gets no body', async () => {
    await serve(async ({ target }) => {
      if (target === '/broken') throw new Error('secret');
      return { status: 200, headers: {}, body: 'well' };
    });
    const client = new RawClient(server.port);
    cleanups.push(() => client.close());
    const headers = { 'content-type': 'text/plain' };
    const broken = await client.call({ path: '/broken', headers: { ...headers, ':method': 'GET' } });
    expect([broken.headers[':status'], broken.body.toString()]).toEqual([500, 'internal error\n']);
    expect(server.logged).toEqual(['an HTTP request failed']);
    const head = await client.call({ path: '/well', headers: { ...headers, ':method': 'HEAD' } });
    expect([head.headers['content-length'], head.body.length]).toEqual(['4', 0]);
  });
});

describe('HTTP/1', () => {
  test('for a client that pipelines requests and reads nothing one response is held', async () => {
    await serve(answerPage);
    const greedy = socketThatSends(requestOf('/page').repeat(10)).pause();
    await expect.poll(() => server.transport.replyBytes, patience).toBe(page.length);
    for (let time = 0; time < 10; time += 1) await expectAnswer();
    expect(asked.filter((each) => each === 'GET /page')).toHaveLength(1);
    expect(server.transport.replyBytes).toBe(page.length);
    // It gets all of them once it reads.
    let readBytes = 0;
    greedy.on('data', (chunk) => (readBytes += chunk.length));
    greedy.resume();
    await expect.poll(() => readBytes, patience).toBeGreaterThan(10 * page.length);
    await expect.poll(() => server.transport.calls, patience).toBe(0);
    await expect.poll(() => server.transport.replyBytes, patience).toBe(0);
  });

  test('a disconnected client leaves no state behind', async () => {
    await serve(answerPage);
    const greedy = socketThatSends(requestOf('/page').repeat(10)).pause();
    await expect.poll(() => server.transport.replyBytes, patience).toBe(page.length);
    greedy.destroy();
    await expect.poll(() => server.transport.calls, patience).toBe(0);
    await expect.poll(() => server.transport.replyBytes, patience).toBe(0);
  });

  test('a client that pipelines too many requests is disconnected', async () => {
    await serve(answerPage, { maxPipelinedRequests: 5 });
    socketThatSends(requestOf('/page').repeat(5)).pause();
    await expect.poll(() => server.logged, patience).toEqual(['a client sends too many HTTP requests ahead']);
    await expect.poll(() => server.transport.connections, patience).toBe(0);
    await expectAnswer();
  });

  test('a body is dropped as it arrives', async () => {
    await serve(answerPage);
    const bodyBytes = 20_000_000;
    const socket = socketThatSends(requestOf('/page', `Content-Length: ${bodyBytes}\r\n`)).pause();
    await new Promise((resolve) => socket.write(Buffer.alloc(bodyBytes), resolve));
    await expectAnswer();
  });

  test('the client that holds most is disconnected, with either version of HTTP', async () => {
    await serve(answerPage, { maxTotalReplyBytes: 1.5 * page.length });
    socketThatSends(requestOf('/page')).pause();
    await expect.poll(() => server.transport.replyBytes, patience).toBe(page.length);
    unreadClient().get('/page');
    await expect.poll(() => server.logged.length, patience).toBe(1);
    await expect.poll(() => server.transport.connections, patience).toBe(1);
    await expectAnswer();
  });
});
