import { gzipSync } from 'node:zlib';
import { frameMessage } from '@tenure/test-support';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MessageReader } from './message-reader.ts';

const maxBytes = 1000;
const messages = fc.array(
  fc.uint8Array({ maxLength: maxBytes }).map((bytes) => Buffer.from(bytes)),
  { maxLength: 8 },
);
const cuts = fc.array(fc.nat(), { maxLength: 20 });

/** The stream split at the given places, anywhere. */
function cut(stream: Buffer, places: readonly number[]): Buffer[] {
  const sorted = places.map((place) => place % (stream.length + 1)).toSorted((a, b) => a - b);
  return [0, ...sorted].map((from, i) => stream.subarray(from, sorted[i] ?? stream.length));
}

function readAll(reader: MessageReader, chunks: readonly Buffer[]): Buffer[] {
  const read: Buffer[] = [];
  for (const chunk of chunks) {
    reader.push(chunk);
    for (let message = reader.next(); message !== undefined; message = reader.next()) read.push(message);
  }
  return read;
}

test('messages are read as written, for any split of the stream', () => {
  fc.assert(
    fc.property(messages, cuts, (sent, places) => {
      const reader = new MessageReader(maxBytes, undefined);
      const received = readAll(reader, cut(Buffer.concat(sent.map((body) => frameMessage(body))), places));
      expect(received).toEqual(sent);
      expect(reader.atBoundary).toBe(true);
      expect(reader.heldBytes).toBe(0);
    }),
  );
});

test('the end of a stream within a message is detected', () => {
  fc.assert(
    fc.property(messages, fc.uint8Array({ minLength: 1, maxLength: 50 }), cuts, fc.nat(), (sent, last, places, at) => {
      const tail = frameMessage(Buffer.from(last));
      const stream = Buffer.concat([...sent.map((body) => frameMessage(body)), tail]);
      const missing = 1 + (at % (tail.length - 1));
      const reader = new MessageReader(maxBytes, undefined);
      const received = readAll(reader, cut(stream.subarray(0, stream.length - missing), places));
      expect(received).toEqual(sent);
      expect(reader.atBoundary).toBe(false);
    }),
  );
});

test('a message may have as many bytes as the limit says, compressed or not, and no more', () => {
  const taken = (bytes: number, encoding?: string): number | undefined => {
    const body = Buffer.alloc(bytes, 'x');
    const framed = encoding === undefined ? frameMessage(body) : frameMessage(gzipSync(body), 1);
    return readAll(new MessageReader(maxBytes, encoding), [framed])[0]?.length;
  };
  for (const encoding of [undefined, 'gzip']) {
    for (const bytes of [0, 1, maxBytes]) expect(taken(bytes, encoding)).toBe(bytes);
    for (const bytes of [maxBytes + 1, 2 * maxBytes]) {
      expect(() => taken(bytes, encoding)).toThrow(/larger than max/);
    }
  }
});

test('a prefix with a large length reserves little', () => {
  const reader = new MessageReader(1 << 30, undefined);
  const before = process.memoryUsage().arrayBuffers;
  readAll(reader, [Buffer.from([0, 0x3f, 0xff, 0xff, 0xff, 1, 2, 3])]);
  expect(reader.heldBytes).toBe(3);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1 << 20);
});

test('a chunk that is pushed too early throws', () => {
  const reader = new MessageReader(maxBytes, undefined);
  reader.push(frameMessage(Buffer.from('x')));
  expect(() => reader.push(Buffer.alloc(1))).toThrow('before the last one was read');
});
