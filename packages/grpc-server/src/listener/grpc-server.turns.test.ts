import {
  callFrames,
  dataFrame,
  echo,
  endHeaders,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  LongestTurn,
  FrameClient,
  repeat,
  settingsFrame,
  startTestServer,
  type TestServer,
  windowUpdate,
} from '@tenure/test-support';
import { afterEach, describe, expect, test } from 'vitest';

/** The bound of one turn is 20 ms; this machine may be slower, and the client uses the same turns. */
const maxTurnMs = 60;
const streams = 20_000;
const initialWindowSize = 4;

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(): Promise<TestServer> {
  const server = await startTestServer({
    '/t.T/Echo': { kind: 'unary', handle: echo },
    '/t.T/Never': { kind: 'unary', handle: () => new Promise(() => {}) },
    '/t.T/Stream': { kind: 'serverStream', handle: () => new Promise(() => {}) },
    '/t.T/Talk': { kind: 'bidi', handle: () => {} },
  });
  cleanups.push(() => server.transport.close({ graceMs: 0 }));
  return server;
}

function attack(port: number, settings: readonly (readonly [number, number])[] = []): FrameClient {
  const client = new FrameClient(port).open(...settings);
  cleanups.push(() => client.destroy());
  return client;
}

async function openMany(client: FrameClient, path: string): Promise<void> {
  for (let first = 0; first < streams; first += 500) {
    client.send(repeat(500, (at) => callFrames(2 * (first + at) + 1, path)));
    await client.settled();
  }
}

/** The longest turn of the server, and of a client that sends little, while the attack lasts. */
async function longestTurn(attacked: () => Promise<void>): Promise<number> {
  const turns = new LongestTurn();
  cleanups.push(() => turns.end());
  await attacked();
  return turns.take();
}

async function expectEcho(port: number): Promise<void> {
  const other = attack(port);
  other.send(callFrames(1, '/t.T/Echo'));
  await other.next(frameTypes.data, 1);
  await other.destroy();
}

describe.skipIf(process.platform !== 'linux')('no turn of the event loop is long', () => {
  test.each(['/t.T/Never', '/t.T/Stream', '/t.T/Talk'])(
    'when a connection ends with many open calls: %s',
    async (path) => {
      const { port, transport } = await serve();
      const client = attack(port);
      await openMany(client, path);
      expect(transport.calls).toBe(streams);
      const longestMs = await longestTurn(async () => {
        client.send(dataFrame(0, Buffer.alloc(0)));
        await client.closed;
        await expectEcho(port);
      });
      expect(transport.calls).toBe(0);
      expect(longestMs).toBeLessThan(maxTurnMs);
    },
  );

  test('when the initial window changes again and again with many calls that wait for it', async () => {
    const { port } = await serve();
    const client = attack(port, [[initialWindowSize, 0]]);
    client.send(windowUpdate(0, 2 ** 30));
    await openMany(client, '/t.T/Echo');
    const longestMs = await longestTurn(async () => {
      for (let bytes = 1; bytes <= 5; bytes += 1) {
        client.send(settingsFrame([initialWindowSize, bytes]), settingsFrame([initialWindowSize, 0]));
        await client.settled();
        client.frames.length = 0;
        await expectEcho(port);
      }
    });
    expect(longestMs).toBeLessThan(maxTurnMs);
  });

  test('when header blocks refer to a large field again and again', async () => {
    const { port } = await serve();
    const client = attack(port);
    const field = Buffer.concat([Buffer.from([0x40, 1, 0x78, 0x7f, 0x81, 0x1d]), Buffer.alloc(3840, 'a')]);
    const block = Buffer.concat([headerBlock(grpcHeaders('/t.T/Never')), field]);
    client.send(http2Frame(frameTypes.headers, endHeaders, 1, block));
    await client.settled();
    const references = Buffer.alloc(16_000, 0xbe);
    const longestMs = await longestTurn(async () => {
      for (let id = 3; id < 60; id += 2) {
        client.send(
          http2Frame(frameTypes.headers, 0, id, references),
          http2Frame(frameTypes.continuation, 0, id, references),
          http2Frame(frameTypes.continuation, endHeaders, id, references),
        );
        const { payload } = await client.next(frameTypes.rstStream, id);
        expect(payload.readUInt32BE(0)).toBe(11);
      }
      await expectEcho(port);
    });
    expect(longestMs).toBeLessThan(maxTurnMs);
  });

  test('when a small window is opened byte by byte for many calls', async () => {
    const { port } = await serve();
    const client = attack(port);
    client.send(windowUpdate(0, 1));
    await openMany(client, '/t.T/Echo');
    const longestMs = await longestTurn(async () => {
      for (let round = 0; round < 20; round += 1) {
        client.send(repeat(1000, () => windowUpdate(0, 1)));
        await client.settled();
        client.frames.length = 0;
        await expectEcho(port);
      }
    });
    expect(longestMs).toBeLessThan(maxTurnMs);
  });
});
