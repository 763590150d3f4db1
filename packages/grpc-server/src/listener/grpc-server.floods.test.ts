import {
  callFrames,
  dataFrame,
  echo,
  endHeaders,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  openFrame,
  FrameClient,
  repeat,
  settingsFrame,
  startTestServer,
  type TestServer,
  windowUpdate,
} from '@tenure/test-support';
import { afterEach, describe, expect, test } from 'vitest';
import { defaultTransportLimits } from '../limits/transport-limits.ts';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(): Promise<TestServer> {
  const server = await startTestServer({
    '/t.T/Echo': { kind: 'unary', handle: echo },
    '/t.T/Never': { kind: 'unary', handle: () => new Promise(() => {}) },
    '/t.T/Talk': { kind: 'bidi', handle: () => {} },
  });
  cleanups.push(() => server.transport.close({ graceMs: 0 }));
  return server;
}

function attack(port: number): FrameClient {
  const client = new FrameClient(port).open();
  cleanups.push(() => client.destroy());
  return client;
}

const limits = defaultTransportLimits;
const ack = 1;
const padded = 8;
const eightBytes = Buffer.alloc(8);
const emptySettings = settingsFrame();
const resetFrame = (id: number): Buffer => http2Frame(frameTypes.rstStream, 0, id, Buffer.from([0, 0, 0, 8]));
const priority = (id: number, on: number): Buffer =>
  http2Frame(frameTypes.priority, 0, id, Buffer.from([0, 0, 0, on, 0]));
const beyond = limits.maxIneffectiveFramesPerSweep + 1;
const paddingAlone = dataFrame(1, Buffer.from([7, ...Buffer.alloc(7)]), padded);

/** What a client sends after its first SETTINGS, with one call of stream 1 open, and why it is disconnected. */
const floods: Record<string, { readonly frames: () => Buffer; readonly reason: RegExp }> = {
  SETTINGS: { frames: () => repeat(limits.maxSettingsPerSweep + 1, () => emptySettings), reason: /SETTINGS/ },
  'acknowledgements of SETTINGS': {
    frames: () => repeat(beyond, () => http2Frame(frameTypes.settings, ack, 0)),
    reason: /no effect/,
  },
  'answers to no PING': {
    frames: () => repeat(beyond, () => http2Frame(frameTypes.ping, ack, 0, eightBytes)),
    reason: /no effect/,
  },
  WINDOW_UPDATE: {
    frames: () => repeat(limits.maxWindowUpdatesPerSweep + 1, () => windowUpdate(0, 1)),
    reason: /WINDOW_UPDATE/,
  },
  PRIORITY: { frames: () => repeat(beyond, () => priority(1, 3)), reason: /no effect/ },
  'unknown frames': { frames: () => repeat(beyond, () => http2Frame(99, 0, 5)), reason: /no effect/ },
  GOAWAY: { frames: () => repeat(beyond, () => http2Frame(frameTypes.goaway, 0, 0, eightBytes)), reason: /no effect/ },
  'empty DATA': { frames: () => repeat(beyond, () => dataFrame(1, Buffer.alloc(0))), reason: /no effect/ },
  'DATA with padding alone': { frames: () => repeat(beyond, () => paddingAlone), reason: /no effect/ },
  'calls that it resets (CVE-2023-44487)': {
    frames: () =>
      repeat(limits.maxResetsPerSweep + 1, (at) =>
        Buffer.concat([openFrame(2 * at + 3, '/t.T/Talk'), resetFrame(2 * at + 3)]),
      ),
    reason: /resets too many/,
  },
  'WINDOW_UPDATE by nothing (CVE-2025-8671)': {
    frames: () => brokenCalls((id) => windowUpdate(id, 0)),
    reason: /invalid frames/,
  },
  'WINDOW_UPDATE beyond the largest window': {
    frames: () => brokenCalls((id) => windowUpdate(id, 2 ** 31 - 1)),
    reason: /invalid frames/,
  },
  'DATA after the end of a stream': {
    frames: () =>
      repeat(limits.maxInvalidFrames + 1, (at) =>
        Buffer.concat([callFrames(2 * at + 3, '/t.T/Never'), dataFrame(2 * at + 3, Buffer.alloc(1))]),
      ),
    reason: /invalid frames/,
  },
  'trailers after the end of a stream': {
    frames: () =>
      repeat(limits.maxInvalidFrames + 1, (at) =>
        Buffer.concat([callFrames(2 * at + 3, '/t.T/Never'), openFrame(2 * at + 3, '/t.T/Never')]),
      ),
    reason: /invalid frames/,
  },
  'PRIORITY on itself': {
    frames: () => brokenCalls((id) => priority(id, id % 256)),
    reason: /invalid frames|no effect/,
  },
  'PRIORITY of a wrong length': {
    frames: () => brokenCalls((id) => http2Frame(frameTypes.priority, 0, id, eightBytes)),
    reason: /invalid frames/,
  },
  'empty CONTINUATION (CVE-2024-27316)': {
    frames: () =>
      Buffer.concat([
        http2Frame(frameTypes.headers, 0, 3, Buffer.alloc(0)),
        repeat(limits.maxContinuations + 1, () => http2Frame(frameTypes.continuation, 0, 3)),
      ]),
    reason: /headers without end/,
  },
  'more calls than it may': {
    frames: () =>
      repeat(limits.maxConcurrentStreams + limits.maxRejectedStreams + 1, (at) => openFrame(2 * at + 3, '/t.T/Talk')),
    reason: /more streams than it may/,
  },
  'headers that are too large': {
    frames: () => {
      const block = headerBlock(
        grpcHeaders(
          '/t.T/Echo',
          Array.from({ length: 70 }, (_, at) => [`x-${at}`, 'x']),
        ),
      );
      return repeat(limits.maxInvalidFrames + 1, (at) => http2Frame(frameTypes.headers, endHeaders, 2 * at + 3, block));
    },
    reason: /invalid frames/,
  },
};

/** Calls, each with a frame that the server answers with RST_STREAM. */
function brokenCalls(broken: (id: number) => Buffer): Buffer {
  return repeat(limits.maxInvalidFrames + 1, (at) =>
    Buffer.concat([openFrame(2 * at + 3, '/t.T/Talk'), broken(2 * at + 3)]),
  );
}

describe('a client that floods its connection with', () => {
  test.each(Object.entries(floods))('%s is disconnected, and leaves nothing', async (_name, { frames, reason }) => {
    const { port, transport, logged } = await serve();
    const client = attack(port);
    client.send(openFrame(1, '/t.T/Talk'), frames());
    await client.closed;
    expect(logged).toEqual([expect.stringMatching(reason)]);
    expect(transport.calls).toBe(0);
    expect(transport.replyBytes).toBe(0);
    const other = attack(port);
    other.send(callFrames(1, '/t.T/Echo'));
    await other.next(frameTypes.data, 1);
  });

  test('new calls after the end of a connection that still serves one is disconnected', async () => {
    const { port, transport, logged } = await serve();
    const client = attack(port);
    client.send(callFrames(1, '/t.T/Never'));
    await client.settled();
    const closing = transport.close({ graceMs: 20_000 });
    await client.next(frameTypes.ping);
    client.send(http2Frame(frameTypes.ping, ack, 0, eightBytes));
    client.send(repeat(beyond, (at) => openFrame(2 * at + 3, '/t.T/Never')));
    await client.closed;
    expect(logged).toEqual([expect.stringMatching(/no effect/)]);
    await closing;
  });
});
