import type { ServerHttp2Stream } from 'node:http2';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { GrpcCode } from './grpc-call-error.ts';
import type { GrpcChannel } from './grpc-channel.ts';
import {
  channelTo,
  countingResets,
  endAll,
  failureOf,
  http2Server,
  maxMessageBytes,
} from './testing/channel-servers.ts';

afterEach(endAll);

const headers = { ':status': 200, 'content-type': 'application/grpc' };

function reply(stream: ServerHttp2Stream): void {
  stream.respond(headers, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(Buffer.from([0, 0, 0, 0, 1, 65]));
}

function refuse(stream: ServerHttp2Stream): void {
  stream.respond({ ...headers, 'grpc-status': String(GrpcCode.unimplemented) }, { endStream: true });
}

function whenComplete(then: (stream: ServerHttp2Stream) => void): (stream: ServerHttp2Stream) => void {
  return (stream) => void stream.resume().on('end', () => then(stream));
}

/** Before the request is complete. The request is read all the same. */
function atOnce(then: (stream: ServerHttp2Stream) => void): (stream: ServerHttp2Stream) => void {
  return (stream) => {
    then(stream);
    stream.resume();
  };
}

const servers = {
  'replies to the complete request': whenComplete(reply),
  'refuses the complete request': whenComplete(refuse),
  'replies at once': atOnce(reply),
  'refuses at once': atOnce(refuse),
};

/** The RST_STREAM frames that the channel sends for `calls`, and for one that it cancels after them. */
async function resetsOf(
  onStream: (stream: ServerHttp2Stream) => void,
  calls: (channel: GrpcChannel) => Promise<unknown>,
): Promise<number> {
  let isLast = false;
  const { proxied, resets } = await countingResets(await http2Server((stream) => isLast || onStream(stream)));
  const channel = channelTo(proxied);
  expect(await channel.connect(5_000)).toBe(true);
  await calls(channel);
  // The turn in which a call that has ended may still be reset.
  await nextTurn();
  isLast = true;
  const before = resets();
  const last = channel.unary('/t/Never', Buffer.alloc(1), 60_000);
  last.cancel();
  await failureOf(last.reply);
  await vi.waitFor(() => expect(resets()).toBeGreaterThan(before));
  return resets();
}

/** A server ends a connection that resets many streams, whether their calls were over or not. */
describe.each(Object.entries(servers))('a call that the server %s', (_, onStream) => {
  test('is not reset when it is unary', async () => {
    const unary = async (channel: GrpcChannel): Promise<void> => {
      for (let call = 0; call < 20; call += 1) {
        await channel.unary('/t/Unary', Buffer.alloc(10), 60_000).reply.catch(() => undefined);
      }
    };
    const resets = await resetsOf(onStream, async (channel) => Promise.all([1, 2, 3, 4].map(() => unary(channel))));
    expect(resets).toBe(1);
  });

  test('is not reset when it is a stream, whether this side has ended it or not', async () => {
    const resets = await resetsOf(onStream, async (channel) => {
      const isAtOnce = onStream === servers['replies at once'] || onStream === servers['refuses at once'];
      for (const isEnded of isAtOnce ? [true, false] : [true]) {
        for (let call = 0; call < 20; call += 1) {
          const stream = channel.stream('/t/Stream');
          stream.on('error', () => {});
          stream.resume().write(Buffer.alloc(10));
          if (isEnded) stream.end();
          await new Promise<void>((resolve) => stream.on('close', () => resolve()));
        }
      }
    });
    expect(resets).toBe(1);
  });
});

test('a request that the server has not read when it ends the call is reset', async () => {
  const stopReading = (stream: ServerHttp2Stream): void => {
    stream.once('data', () => {
      stream.pause();
      reply(stream);
    });
  };
  const calls = async (channel: GrpcChannel): Promise<unknown> =>
    channel.unary('/t/Large', Buffer.alloc(5 * maxMessageBytes), 60_000).reply;
  expect(await resetsOf(stopReading, calls)).toBe(2);
});

test('thousands of calls keep their connection', async () => {
  const sessions = new Set<unknown>();
  const address = await http2Server((stream) => {
    sessions.add(stream.session);
    whenComplete(reply)(stream);
  });
  const channel = channelTo(address);
  expect(await channel.connect(5_000)).toBe(true);
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (let call = 0; call < 1_000; call += 1) await channel.unary('/t/Unary', Buffer.alloc(10), 60_000).reply;
    }),
  );
  expect(sessions.size).toBe(1);
});
