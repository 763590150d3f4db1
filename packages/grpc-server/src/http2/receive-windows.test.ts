import {
  FrameClient,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  type ReceivedFrame,
} from '@tenure/test-support';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import type { SessionLimits } from './session-limits.ts';
import { type RecordedStream, SessionServer } from './testing/session-server.ts';
import { defaultWindowBytes, errorCode } from './frame-type.ts';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A client that knows its windows, and sends no more than they allow unless it is told to. */
class CountingClient {
  readonly frames: FrameClient;
  readonly windows = new Map<number, number>([[0, defaultWindowBytes]]);
  #syncs = 0;

  constructor(port: number) {
    this.frames = new FrameClient(port);
    this.frames.onFrame = (frame) => this.#received(frame);
    this.frames.open();
  }

  openStream(id: number): void {
    this.windows.set(id, 65_536);
    const headers = headerBlock(grpcHeaders('/t.T/Any'));
    this.frames.send(http2Frame(frameTypes.headers, 4, id, headers));
  }

  /** Sends DATA, and returns its bytes: fewer when the windows allow no more. */
  send(id: number, bytes: number, padding = -1): number {
    const overhead = padding < 0 ? 0 : padding + 1;
    const most = Math.min(this.windowOf(0), this.windowOf(id), 16_384) - overhead;
    const count = Math.min(bytes, most);
    if (count < 0) return 0;
    this.#take(count + overhead, 0, id);
    const data = Buffer.alloc(count, 1);
    if (padding < 0) this.frames.send(http2Frame(frameTypes.data, 0, id, data));
    else {
      const padded = Buffer.concat([Buffer.from([padding]), data, Buffer.alloc(padding)]);
      this.frames.send(http2Frame(frameTypes.data, 8, id, padded));
    }
    return count;
  }

  windowOf(id: number): number {
    return this.windows.get(id) ?? 0;
  }

  sync(): Promise<void> {
    this.#syncs += 1;
    return this.frames.sync(this.#syncs);
  }

  #take(bytes: number, ...ids: number[]): void {
    for (const id of ids) this.windows.set(id, this.windowOf(id) - bytes);
  }

  #received({ type, streamId, payload }: ReceivedFrame): void {
    if (type === frameTypes.windowUpdate) this.#take(-payload.readUInt32BE(0), streamId);
  }
}

interface Opened {
  readonly client: CountingClient;
  readonly stream: (id: number) => RecordedStream;
}

async function open(limits: Partial<SessionLimits> = {}): Promise<Opened> {
  const server = await SessionServer.start(limits);
  cleanups.push(() => server.close());
  const client = new CountingClient(server.port);
  cleanups.push(() => client.frames.destroy());
  for (const id of [1, 3, 5]) client.openStream(id);
  await client.sync();
  return { client, stream: (id) => server.last.stream(id) };
}

test('a client that respects its windows sends any amount in any frames, with padding and pauses', async () => {
  const step = fc.record({
    stream: fc.constantFrom(1, 3, 5),
    bytes: fc.oneof(fc.nat(10), fc.nat(20_000)),
    padding: fc.oneof({ weight: 3, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(255) }),
    act: fc.constantFrom('send', 'send', 'send', 'send', 'pause', 'resume', 'sync'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 120, size: 'max' }), async (steps) => {
      const { client, stream } = await open({ streamWindowBytes: 100_000, connectionWindowBytes: 200_000 });
      const sent = new Map([1, 3, 5].map((id) => [id, 0]));
      for (const { stream: id, bytes, padding, act } of steps) {
        if (act === 'send') sent.set(id, (sent.get(id) ?? 0) + client.send(id, bytes, padding));
        else await client.sync();
        if (act === 'pause') stream(id).pauseData();
        else if (act === 'resume') stream(id).resumeData();
      }
      await client.sync();
      for (const id of [1, 3, 5]) stream(id).resumeData();
      await client.sync();
      for (const id of [1, 3, 5]) {
        expect(stream(id).body.length).toBe(sent.get(id));
        // At least half of the window that it was given is there again.
        expect(client.windowOf(id)).toBeGreaterThanOrEqual(65_536 / 2);
        expect(client.windowOf(id)).toBeLessThanOrEqual(100_000);
      }
      expect(client.windowOf(0)).toBeLessThanOrEqual(200_000);
      await client.frames.destroy();
    }),
    { numRuns: 25 },
  );
});

test('a stream whose client sends more than its window is reset, and the others go on', async () => {
  const { client, stream } = await open();
  stream(1).pauseData();
  while (client.windowOf(1) > 0) client.send(1, 16_384);
  client.frames.send(http2Frame(frameTypes.data, 0, 1, Buffer.alloc(1)));
  const reset = await client.frames.frame(frameTypes.rstStream);
  expect(reset.streamId).toBe(1);
  expect(reset.payload.readUInt32BE(0)).toBe(errorCode.flowControlError);
  client.send(3, 100);
  await client.sync();
  expect(stream(3).body.length).toBe(100);
});

test('windows double while data is read, up to their limits, and paused data gives none back', async () => {
  const { client, stream } = await open({ streamWindowBytes: 262_144 });
  stream(3).pauseData();
  for (let i = 0; i < 100; i++) {
    client.send(1, 16_384);
    client.send(3, 16_384);
    await client.sync();
  }
  const granted = Math.max(...windowsOf(client, 1));
  expect(granted).toBeGreaterThan(100_000);
  expect(client.windowOf(1)).toBeLessThanOrEqual(262_144);
  expect(client.windowOf(3)).toBe(0);
  expect(stream(3).heldBytes).toBe(65_536);
});

/** What was given in each WINDOW_UPDATE of a stream. */
function windowsOf(client: CountingClient, id: number): number[] {
  const updates = client.frames.frames.filter(
    ({ type, streamId }) => type === frameTypes.windowUpdate && streamId === id,
  );
  return updates.map(({ payload }) => payload.readUInt32BE(0));
}
