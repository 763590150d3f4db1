import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { Http2Server, ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { runFrameLoad } from './frame-load.ts';
import { frame, FrameReader } from './grpc-frames.ts';
import { MessageStreams, whileOpen } from './message-streams.ts';

const servers: Http2Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A server of node:http2 with its own windows and settings. */
async function serve(onStream: (stream: ServerHttp2Stream) => void): Promise<string> {
  const server = createServer();
  servers.push(server);
  server.on('stream', (stream) => {
    stream.on('error', () => undefined);
    onStream(stream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function echo(stream: ServerHttp2Stream): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
  const reader = new FrameReader((message) => void stream.write(frame(message)));
  stream.on('data', (chunk: Buffer) => reader.push(chunk));
}

test('sends and receives more than any window on streams that stay open', async () => {
  const address = await serve(echo);
  const [streams, messages] = [3, 1_400];
  const received = Array.from({ length: streams }, () => 0);
  let allDone = (): void => undefined;
  const done = new Promise<void>((resolve) => (allDone = resolve));
  const messageOf = (stream: number, index: number): Buffer => {
    const message = Buffer.alloc(1_000, stream);
    message.writeUInt32BE(index, 0);
    return message;
  };
  const connection = await MessageStreams.open({
    address,
    path: '/echo',
    streams,
    onMessage: (stream, message) => {
      const index = received[stream] ?? 0;
      expect(message.equals(messageOf(stream, index))).toBe(true);
      received[stream] = index + 1;
      if (index + 1 < messages) connection.send(stream, frame(messageOf(stream, index + 1)));
      else if (received.every((count) => count === messages)) allDone();
    },
  });
  for (let stream = 0; stream < streams; stream += 1) connection.send(stream, frame(messageOf(stream, 0)));
  connection.flush();
  await whileOpen([connection], done);
  connection.close();
  await connection.closed;
  expect(received).toEqual([messages, messages, messages]);
});

test('sends what is larger than a frame', async () => {
  const address = await serve(echo);
  const message = Buffer.alloc(40_000, 7);
  let take = (_message: Buffer): void => undefined;
  const echoed = new Promise<Buffer>((resolve) => (take = resolve));
  const connection = await MessageStreams.open({
    address,
    path: '/large',
    streams: 1,
    onMessage: (_stream, received) => take(Buffer.from(received)),
  });
  connection.send(0, frame(message));
  connection.flush();
  await whileOpen(
    [connection],
    echoed.then((received) => expect(received.equals(message)).toBe(true)),
  );
  connection.close();
});

test('fails rather than send more than the server has granted', async () => {
  const address = await serve((stream) => stream.respond({ ':status': 200 }));
  const connection = await MessageStreams.open({ address, path: '/full', streams: 1, onMessage: () => undefined });
  connection.send(0, Buffer.alloc(60_000));
  expect(() => connection.send(0, Buffer.alloc(6_000))).toThrow('window');
  connection.close();
});

test('fails when the server ends a stream, or closes the connection', async () => {
  const ending = await serve((stream) => {
    stream.respond({ ':status': 200, 'grpc-status': '14' }, { endStream: true });
  });
  const closing = await serve((stream) => stream.session?.destroy());
  for (const address of [ending, closing]) {
    const connection = await MessageStreams.open({ address, path: '/end', streams: 1, onMessage: () => undefined });
    connection.send(0, frame(Buffer.from('message')));
    connection.flush();
    await expect(connection.closed).rejects.toThrow('the server');
  }
});

test('answers each unary request once, and refuses a reply without a message', async () => {
  const address = await serve((stream) => {
    const reader = new FrameReader((message) => {
      if (message.toString() === 'refused') return stream.respond({ 'grpc-status': '3' }, { endStream: true });
      stream.respond({ ':status': 200 });
      stream.end(frame(message));
    });
    stream.on('data', (chunk: Buffer) => reader.push(chunk));
  });
  const replies = new Map<number, string>();
  const load = { address, path: '/unary', connections: 2, streamsPerConnection: 5 };
  await runFrameLoad({
    ...load,
    requests: 500,
    framedRequest: (index) => frame(Buffer.from(`request ${index}`)),
    onReply: (index, message) => replies.set(index, message.toString()),
  });
  expect(replies.size).toBe(500);
  expect([...replies].every(([index, reply]) => reply === `request ${index}`)).toBe(true);
  const refused = runFrameLoad({ ...load, requests: 1, framedRequest: () => frame(Buffer.from('refused')) });
  await expect(refused).rejects.toThrow('refused');
});
