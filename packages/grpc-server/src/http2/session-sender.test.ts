import {
  endStream,
  FrameClient,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  type ReceivedFrame,
  settingsFrame,
} from '@tenure/test-support';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { HeaderBlock } from './header-block.ts';
import type { SessionLimits } from './session-limits.ts';
import { type RecordedConnection, SessionServer } from './testing/session-server.ts';
import { defaultWindowBytes, flag, maxFrameBytes, setting } from './frame-type.ts';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const ids = [1, 3, 5];
const answer = HeaderBlock.once([[':status', '200', 'plain']]);
const trailers = HeaderBlock.once([['grpc-status', '0', 'plain']]);

/** The window that a client has given, and may take back below zero. */
function windowUpdate(id: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return http2Frame(frameTypes.windowUpdate, 0, id, payload);
}

/** A client that checks each DATA frame against what it has allowed. */
class StrictClient {
  readonly frames: FrameClient;
  readonly bodies = new Map<number, Buffer[]>(ids.map((id) => [id, []]));
  /** The ids of DATA frames, in their order. */
  readonly order: number[] = [];
  readonly ended = new Set<number>();
  readonly faults: string[] = [];
  #connection = defaultWindowBytes;
  #initial = defaultWindowBytes;
  /** Settings that the server has not acknowledged. */
  readonly #sentInitial: number[] = [];
  readonly #deltas = new Map<number, number>(ids.map((id) => [id, 0]));
  #syncs = 0;

  constructor(port: number, initial: number) {
    this.frames = new FrameClient(port);
    this.frames.onFrame = (frame) => this.#received(frame);
    this.#sentInitial.push(initial);
    this.frames.open([setting.initialWindowSize, initial]);
    const request = headerBlock(grpcHeaders('/t.T/Any'));
    for (const id of ids) this.frames.send(http2Frame(frameTypes.headers, flag.endHeaders | endStream, id, request));
  }

  /** More for a stream, or for the connection with 0. */
  allow(id: number, bytes: number): void {
    if (id === 0) this.#connection += bytes;
    else this.#deltas.set(id, (this.#deltas.get(id) ?? 0) + bytes);
    this.frames.send(windowUpdate(id, bytes));
  }

  setInitial(bytes: number): void {
    this.#sentInitial.push(bytes);
    this.frames.send(settingsFrame([setting.initialWindowSize, bytes]));
  }

  body(id: number): Buffer {
    return Buffer.concat(this.bodies.get(id) ?? []);
  }

  sync(): Promise<void> {
    this.#syncs += 1;
    return this.frames.sync(this.#syncs);
  }

  allEnded(): Promise<void> {
    return this.frames.until(() => this.ended.size === ids.length, 'the end of all streams');
  }

  #received({ type, flags, streamId, payload }: ReceivedFrame): void {
    if (type === frameTypes.settings && (flags & flag.ack) !== 0) this.#initial = this.#sentInitial.shift() ?? -1;
    if ((flags & flag.endStream) !== 0 && type <= frameTypes.headers) this.ended.add(streamId);
    if (type !== frameTypes.data) return;
    this.order.push(streamId);
    this.bodies.get(streamId)?.push(payload);
    if (payload.length === 0) return;
    if (payload.length > maxFrameBytes) this.faults.push('a frame that is too large');
    this.#connection -= payload.length;
    this.#deltas.set(streamId, (this.#deltas.get(streamId) ?? 0) - payload.length);
    if (this.#connection < 0) this.faults.push('beyond the window of the connection');
    if (this.#initial + (this.#deltas.get(streamId) ?? 0) < 0) this.faults.push(`beyond the window of ${streamId}`);
  }
}

interface Opened {
  readonly client: StrictClient;
  readonly connection: RecordedConnection;
}

async function open(initial: number, limits: Partial<SessionLimits> = {}): Promise<Opened> {
  const server = await SessionServer.start(limits);
  cleanups.push(() => server.close());
  const client = new StrictClient(server.port, initial);
  cleanups.push(() => client.frames.destroy());
  await client.sync();
  return { client, connection: server.last };
}

/** Bytes in which each piece differs from the others. */
function counted(from: number, bytes: number): Buffer {
  return Buffer.from(Array.from({ length: bytes }, (_, i) => (from + i) % 253));
}

const step = fc.oneof(
  fc.record({ kind: fc.constant('send'), id: fc.constantFrom(...ids), bytes: fc.oneof(fc.nat(20), fc.nat(50_000)) }),
  fc.record({ kind: fc.constant('later'), id: fc.constantFrom(...ids), bytes: fc.oneof(fc.nat(20), fc.nat(5000)) }),
  fc.record({ kind: fc.constant('allow'), id: fc.constantFrom(...ids, 0), bytes: fc.constantFrom(1, 2, 700, 30_000) }),
  fc.record({ kind: fc.constant('initial'), id: fc.constant(0), bytes: fc.constantFrom(0, 1, 10, 5000, 65_535) }),
  fc.record({ kind: fc.constantFrom('sync', 'pause', 'resume', 'turn'), id: fc.constant(0), bytes: fc.constant(0) }),
);

test('sends beyond no window, and each stream in its order, however windows change', async () => {
  const initials = fc.constantFrom(0, 1, 65_535);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80, size: 'max' }), initials, async (steps, initial) => {
      const { client, connection } = await open(initial, { maxOutputBytes: 30_000 });
      const sent = new Map(ids.map((id) => [id, 0]));
      for (const id of ids) connection.stream(id).sendHead(answer);
      for (const { kind, id, bytes } of steps) {
        if (kind === 'send' || kind === 'later') {
          const before = sent.get(id) ?? 0;
          sent.set(id, before + bytes);
          if (kind === 'send') connection.stream(id).sendData(counted(before, bytes));
          else connection.stream(id).sendDataLater(counted(before, bytes));
        } else if (kind === 'allow') client.allow(id, bytes);
        else if (kind === 'initial') client.setInitial(bytes);
        else if (kind === 'pause') client.frames.socket.pause();
        else if (kind === 'turn') await new Promise((resolve) => setImmediate(resolve));
        else {
          client.frames.socket.resume();
          if (kind === 'sync') await client.sync();
        }
      }
      client.frames.socket.resume();
      for (const id of ids) connection.stream(id).sendEnd(trailers);
      client.setInitial(2 ** 24);
      client.allow(0, 2 ** 24);
      await client.allEnded();
      expect(client.faults).toEqual([]);
      for (const id of ids) {
        expect(client.body(id).equals(counted(0, sent.get(id) ?? 0)), `the body of ${id}`).toBe(true);
        expect(connection.stream(id).closes).toBe(1);
      }
      await client.frames.destroy();
    }),
    { numRuns: 40 },
  );
});

describe('streams that have much to send', () => {
  const megabyte = Buffer.alloc(1 << 20, 1);

  test('share the connection evenly', async () => {
    const { client, connection } = await open(2 ** 24);
    client.allow(0, 2 ** 24);
    await client.sync();
    for (const id of ids) {
      connection.stream(id).sendHead(answer);
      connection.stream(id).sendData(megabyte);
      connection.stream(id).sendEnd();
    }
    await client.allEnded();
    const sent = new Map(ids.map((id) => [id, 0]));
    let largestLead = 0;
    // What the first stream wrote before the others had anything is its own.
    for (const id of client.order.slice(0, -ids.length * 8)) {
      sent.set(id, (sent.get(id) ?? 0) + 1);
      largestLead = Math.max(largestLead, Math.max(...sent.values()) - Math.min(...sent.values()));
    }
    expect(largestLead).toBeLessThanOrEqual(16);
  });

  test('take turns with the window of the connection, which a newer stream does not take from them', async () => {
    const { client, connection } = await open(2 ** 24);
    const [first = 0, second = 0, third = 0] = ids;
    for (const id of ids) connection.stream(id).sendHead(answer);
    connection.stream(first).sendData(megabyte);
    connection.stream(second).sendData(megabyte);
    await client.frames.until(() => client.body(first).length + client.body(second).length === defaultWindowBytes);
    client.order.length = 0;
    // Its last bytes went to the second, so the first has waited less. Then, in one turn, the window arrives and a
    // third stream has data.
    connection.session?.sender.addConnectionWindow(100);
    connection.stream(third).sendData(megabyte);
    for (let i = 0; i < 6; i++) {
      await client.sync();
      connection.session?.sender.addConnectionWindow(100);
    }
    await client.sync();
    expect(client.order.slice(0, 6)).toEqual([second, first, second, third, first, second]);
  });
});

test('a window of single bytes carries everything', async () => {
  const { client, connection } = await open(0);
  const body = counted(0, 300);
  connection.stream(1).sendHead(answer);
  connection.stream(1).sendData(body);
  connection.stream(1).sendEnd(trailers);
  for (let i = 0; i < body.length; i++) client.allow(1, 1);
  await client.frames.until(() => client.ended.has(1), 'the end');
  expect(client.body(1).equals(body)).toBe(true);
  expect(client.faults).toEqual([]);
});

test('a window that was lowered below zero is waited for until it is positive', async () => {
  const { client, connection } = await open(10_000);
  const stream = connection.stream(1);
  stream.sendHead(answer);
  stream.sendData(counted(0, 20_000));
  await client.frames.until(() => client.body(1).length === 10_000);
  client.setInitial(0);
  client.allow(1, 10_000);
  await client.sync();
  expect(client.body(1).length).toBe(10_000);
  client.allow(1, 1);
  await client.frames.until(() => client.body(1).length === 10_001);
  client.setInitial(9999);
  await client.frames.until(() => client.body(1).length === 20_000);
  expect(client.faults).toEqual([]);
});

test('headers leave although no window is open, and the end without data too', async () => {
  const { client, connection } = await open(0);
  connection.stream(1).sendHead(answer);
  connection.stream(1).sendData(Buffer.from('x'));
  connection.stream(3).sendHead(answer, true);
  connection.stream(5).sendHead(answer);
  connection.stream(5).sendEnd(trailers);
  await client.frames.until(() => client.ended.has(3) && client.ended.has(5));
  expect(client.frames.frames.some((frame) => frame.type === frameTypes.headers && frame.streamId === 1)).toBe(true);
  expect(client.body(1).length).toBe(0);
});

test('a whole answer is refused when its data has no window, and sent as one else', async () => {
  const { client, connection } = await open(10);
  const whole = (id: number, bytes: number): boolean | undefined =>
    connection.session?.sender.sendWhole(connection.stream(id), answer, counted(0, bytes), trailers);
  expect(whole(1, 11)).toBe(false);
  expect(whole(1, 10)).toBe(true);
  await client.frames.until(() => client.ended.has(1));
  expect(client.body(1).length).toBe(10);
  expect(client.faults).toEqual([]);
  expect(connection.stream(1).closes).toBe(1);
});

test('headers that are larger than a frame are continued', async () => {
  const { client, connection } = await open(0);
  const long = HeaderBlock.once([
    [':status', '200', 'plain'],
    ['x-long', '\u00ff'.repeat(40_000), 'never'],
  ]);
  connection.stream(1).sendHead(long, true);
  await client.frames.until(() => client.ended.has(1));
  const last = await client.frames.frame(frameTypes.continuation);
  const continuations = (): ReceivedFrame[] =>
    client.frames.frames.filter(({ type }) => type === frameTypes.continuation);
  await client.frames.until(() => (continuations().at(-1)?.flags ?? 0) === flag.endHeaders);
  expect(last.streamId).toBe(1);
  expect(continuations().length).toBeGreaterThan(1);
});

test('a client that reads nothing holds no more than the output, and gets everything in the end', async () => {
  const { client, connection } = await open(2 ** 30, { maxOutputBytes: 65_536 });
  client.allow(0, 2 ** 30);
  await client.sync();
  client.frames.socket.pause();
  const body = Buffer.alloc(20 << 20, 5);
  connection.stream(1).sendHead(answer);
  connection.stream(1).sendData(body);
  connection.stream(1).sendEnd();
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(connection.stream(1).pendingBytes).toBeGreaterThan(0);
  client.frames.socket.resume();
  await client.frames.until(() => client.ended.has(1));
  expect(client.body(1).equals(body)).toBe(true);
  await client.sync();
  expect(connection.heldOutputBytes).toBe(0);
});

test('what was reset leaves nothing more', async () => {
  const { client, connection } = await open(5);
  connection.stream(1).sendHead(answer);
  connection.stream(1).sendData(counted(0, 100));
  await client.frames.until(() => client.body(1).length === 5);
  connection.stream(1).reset(8);
  await client.frames.frame(frameTypes.rstStream);
  client.allow(1, 1000);
  await client.sync();
  expect(client.body(1).length).toBe(5);
  expect(connection.stream(1).closes).toBe(1);
});
