import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { create, toBinary } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import type { MethodHandler } from '../transport/transport.ts';
import { ReplyEncoder } from './reply-encoder.ts';
import { ResultLines } from './result-lines.ts';
import { longestTurnMs } from './testing/longest-turn.ts';
import { serveGateway } from './testing/serve-gateway.ts';

const descriptor = etcdserverpb.WatchResponseSchema;
/** No request may take longer on the event loop. */
const limitMs = 20;

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** A watch response with so many events, without the headroom of gRPC. */
function response(events: number): Buffer {
  const kv = {
    key: Buffer.from('k/000001'),
    createRevision: 5n,
    modRevision: 6n,
    version: 1n,
    value: Buffer.from('v'),
  };
  return Buffer.from(
    toBinary(descriptor, create(descriptor, { events: Array.from({ length: events }, () => ({ kv })) })),
  );
}

function framed(message: Buffer): Buffer {
  return Buffer.concat([Buffer.alloc(5), message]);
}

function line(message: Buffer): string {
  return `{"result":${ReplyEncoder.encode(descriptor, message)}}\n`;
}

const short = response(3);
const long = response(2000);
/** As long as the watches make them. */
const longest = response(60_000);

/** Sends to a sink that takes each write in a later turn; resolves with what it took, when the lines have ended. */
function sentLines(messages: readonly Buffer[]): Promise<string> {
  return new Promise((resolve) => {
    const taken: Buffer[] = [];
    const lines = new ResultLines(descriptor, {
      write: (json, onTaken) => {
        taken.push(json);
        if (onTaken !== undefined) setImmediate(onTaken);
        return true;
      },
      onSent: () => {},
    });
    for (const message of messages) lines.send(framed(message));
    lines.whenSent(() => {
      expect(lines.waitingBytes).toBe(0);
      resolve(Buffer.concat(taken).toString());
    });
  });
}

test('every message becomes its line, in order, whichever of them are long', async () => {
  const messages = fc.array(fc.constantFrom(short, long, Buffer.alloc(0)), { maxLength: 8 });
  const property = fc.asyncProperty(messages, async (drawn) => {
    expect(await sentLines(drawn)).toBe(drawn.map(line).join(''));
  });
  await fc.assert(property, { numRuns: 30 });
});

test('a long line waits for the socket, and after the stream is closed nothing is written', () => {
  let taken: (() => void) | undefined;
  let writes = 0;
  const lines = new ResultLines(descriptor, {
    write: (_json, onTaken) => {
      writes += 1;
      taken = onTaken;
      return true;
    },
    onSent: () => expect.unreachable(),
  });
  expect(lines.send(framed(long))).toBe(false);
  expect(lines.send(framed(short))).toBe(false);
  expect(writes).toBe(1);
  expect(lines.waitingBytes).toBe(long.length - 16 * 1024 + short.length);
  lines.close();
  taken?.();
  return new Promise<void>((resolve) => {
    setImmediate(() => {
      expect([writes, lines.waitingBytes]).toEqual([1, 0]);
      resolve();
    });
  });
});

test('a line of 60,000 events leaves the event loop in time', async () => {
  expect(longest.length).toBeGreaterThan(1024 * 1024);
  expect(await longestTurnMs(() => sentLines([longest]))).toBeLessThan(limitMs);
});

const watch: MethodHandler = {
  kind: 'bidi',
  handle: (call) => {
    call.onMessage = () => {
      expect(call.send(framed(longest))).toBe(false);
      call.send(framed(short));
      call.onDrain = () => {
        call.send(framed(short));
        call.end(new GrpcStatus(GrpcCode.unavailable, 'over'));
      };
    };
  },
};

const blob = Buffer.from(
  toBinary(
    etcdserverpb.SnapshotResponseSchema,
    create(etcdserverpb.SnapshotResponseSchema, { blob: Buffer.alloc(1_000_000, 'x') }),
  ),
);

const snapshot: MethodHandler = {
  kind: 'serverStream',
  handle: async (_request, _call, send) => {
    await send(framed(blob));
    void send(framed(Buffer.alloc(0)));
    await send(framed(blob));
  },
};

/** The whole response to a POST with an empty message. */
async function answer(port: number, path: string): Promise<string> {
  const sent = request({ host: '127.0.0.1', port, path, method: 'POST' });
  const body = new Promise<string>((resolve, reject) => {
    sent.on('error', reject);
    sent.on('response', (incoming) => resolve(text(incoming)));
  });
  sent.end('{}');
  return await body;
}

test('a stream that is told of room goes on after a long line, and its end comes last', async () => {
  const { port, close } = await serveGateway({ routes: { '/etcdserverpb.Watch/Watch': watch } });
  cleanups.push(close);
  const found = await answer(port, '/v3/watch');
  const lines = `${line(longest)}${line(short)}${line(short)}`;
  expect(found.slice(0, lines.length) === lines).toBe(true);
  expect(JSON.parse(found.slice(lines.length))).toMatchObject({ error: { message: 'over' } });
});

test('a server stream waits for the end of a long line', async () => {
  const { port, close } = await serveGateway({ routes: { '/etcdserverpb.Maintenance/Snapshot': snapshot } });
  cleanups.push(close);
  const found = await answer(port, '/v3/maintenance/snapshot');
  const lines = [blob, Buffer.alloc(0), blob].map((message) => {
    return `{"result":${ReplyEncoder.encode(etcdserverpb.SnapshotResponseSchema, message)}}\n`;
  });
  expect(found === lines.join('')).toBe(true);
});
