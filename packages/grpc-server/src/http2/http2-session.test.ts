import {
  endHeaders,
  endStream,
  FrameClient,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  settingsFrame,
} from '@tenure/test-support';
import { afterEach, describe, expect, test } from 'vitest';
import { HeaderBlock } from './header-block.ts';
import type { SessionLimits } from './session-limits.ts';
import { type RecordedStream, SessionServer } from './testing/session-server.ts';
import { errorCode, maxWindowBytes, setting } from './frame-type.ts';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const request = headerBlock(grpcHeaders('/t.T/Any'));
const answer = HeaderBlock.once([[':status', '200', 'plain']]);

const headers = (id: number, flags = 0): Buffer => http2Frame(frameTypes.headers, endHeaders | flags, id, request);
const data = (id: number, payload: Buffer, flags = 0): Buffer => http2Frame(frameTypes.data, flags, id, payload);

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

interface Opened {
  readonly server: SessionServer;
  readonly client: FrameClient;
}

async function connect(limits: Partial<SessionLimits> = {}): Promise<Opened> {
  const server = await SessionServer.start(limits);
  cleanups.push(() => server.close());
  const client = new FrameClient(server.port).open();
  cleanups.push(() => client.destroy());
  await client.sync(0);
  return { server, client };
}

async function withStream(limits: Partial<SessionLimits> = {}): Promise<Opened & { stream: RecordedStream }> {
  const opened = await connect(limits);
  await opened.client.send(headers(1)).sync(1);
  return { ...opened, stream: opened.server.last.stream(1) };
}

describe('PINGs', () => {
  test('are allowed as often as data is sent, although no headers are', async () => {
    const { client, stream } = await withStream({ keepAliveMinTimeMs: 3_600_000 });
    stream.sendHead(answer);
    await client.frame(frameTypes.headers);
    for (let i = 0; i < 10; i++) {
      stream.sendData(Buffer.from('x'));
      await client.frame(frameTypes.data, i);
      await client.sync(100 + i);
    }
    expect(client.isClosed).toBe(false);
  });

  test('end the connection when nothing is sent between too many of them', async () => {
    const { client, server } = await withStream({ keepAliveMinTimeMs: 3_600_000 });
    for (let i = 0; i < 5; i++) client.send(http2Frame(frameTypes.ping, 0, 0, Buffer.alloc(8)));
    const { payload } = await client.frame(frameTypes.goaway);
    expect(payload.readUInt32BE(4)).toBe(errorCode.enhanceYourCalm);
    expect(payload.subarray(8).toString()).toBe('too_many_pings');
    expect(server.last.faults).toEqual(['a client sends PINGs too often']);
  });
});

test('the last GOAWAY of a drained connection names no stream that was refused', async () => {
  const { client, server, stream } = await withStream();
  server.last.session?.drain();
  const notice = await client.frame(frameTypes.goaway);
  expect(notice.payload.readUInt32BE(0)).toBe(2 ** 31 - 1);
  await client.frame(frameTypes.ping, 2);
  client.send(http2Frame(frameTypes.ping, 1, 0, Buffer.alloc(8)));
  expect((await client.frame(frameTypes.goaway, 1)).payload.readUInt32BE(0)).toBe(1);
  client.send(headers(3), data(1, Buffer.alloc(0), endStream));
  expect((await client.frame(frameTypes.rstStream)).payload.readUInt32BE(0)).toBe(errorCode.refusedStream);
  stream.sendHead(answer, true);
  expect((await client.frame(frameTypes.goaway, 2)).payload.readUInt32BE(0)).toBe(1);
  await client.closed;
});

describe('SETTINGS_INITIAL_WINDOW_SIZE', () => {
  const increaseStream = (by: number): Buffer => http2Frame(frameTypes.windowUpdate, 0, 1, uint32(by));

  test('that makes the window of an open stream too large ends the connection', async () => {
    const { client } = await withStream();
    client.send(increaseStream(maxWindowBytes - 65_535), settingsFrame([setting.initialWindowSize, 65_536]));
    expect((await client.frame(frameTypes.goaway)).payload.readUInt32BE(4)).toBe(errorCode.flowControlError);
  });

  test('is judged by the streams that are open', async () => {
    const { client } = await withStream();
    client.send(
      increaseStream(maxWindowBytes - 65_535),
      http2Frame(frameTypes.rstStream, 0, 1, uint32(errorCode.cancel)),
      settingsFrame([setting.initialWindowSize, maxWindowBytes]),
    );
    await client.sync(2);
    expect(client.isClosed).toBe(false);
  });
});

describe('a paused stream', () => {
  test('gets single bytes in their order, however many are held, by whatever asks for more', async () => {
    const { client, stream } = await withStream();
    stream.pauseData();
    const bytes = Buffer.from(Array.from({ length: 20_000 }, (_, i) => i % 251));
    client.send(...Array.from(bytes, (byte) => data(1, Buffer.from([byte]))));
    await client.sync(2);
    expect(stream.heldBytes).toBe(bytes.length);
    stream.onReceived = () => stream.session.readHeld(stream);
    stream.resumeData();
    expect(stream.body.equals(bytes)).toBe(true);
    expect(stream.heldBytes).toBe(0);
  });

  test('that has answered closes with the end of its client', async () => {
    const { client, stream } = await withStream();
    stream.sendHead(answer, true);
    stream.pauseData();
    client.send(data(1, Buffer.from('late'), endStream));
    await client.sync(2);
    expect(stream.closes).toBe(1);
  });

  test('learns of the end after the data that it held', async () => {
    const { client, stream } = await withStream();
    stream.pauseData();
    await client.send(data(1, Buffer.from('late'), endStream)).sync(2);
    expect(stream.hasEnded).toBe(false);
    stream.resumeData();
    expect(stream.body.toString()).toBe('late');
    expect(stream.hasEnded).toBe(true);
    stream.sendHead(answer, true);
    expect(stream.closes).toBe(1);
  });
});

test('streams beyond the limit are refused, and the connection of a client that goes on is ended', async () => {
  const { client, server } = await connect({ maxConcurrentStreams: 2, maxRejectedStreams: 3 });
  for (let i = 0; i < 5; i++) client.send(headers(2 * i + 1, endStream));
  await client.sync(1);
  const resets = client.frames.filter(({ type }) => type === frameTypes.rstStream);
  expect(resets.map(({ streamId, payload }) => [streamId, payload.readUInt32BE(0)])).toEqual(
    [5, 7, 9].map((id) => [id, errorCode.refusedStream]),
  );
  server.last.stream(1).sendHead(answer, true);
  await client.send(headers(11, endStream)).sync(2);
  expect(server.last.streams.has(11)).toBe(true);
  client.send(headers(13, endStream));
  expect((await client.frame(frameTypes.goaway)).payload.readUInt32BE(4)).toBe(errorCode.enhanceYourCalm);
});
