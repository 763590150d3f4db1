import { http2Frame, http2Preface } from '@tenure/test-support';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameReader, readUint31 } from './frame-reader.ts';
import { clientPreface, maxFrameBytes } from './frame-type.ts';

/** Stops the reader at these frames, until it is resumed. */
function collector(stopAt: ReadonlySet<number> = new Set()): { read: string[]; reader: FrameReader } {
  const read: string[] = [];
  const reader = new FrameReader(
    {
      frame: (type, flags, id, bytes, start, end) => {
        if (stopAt.has(read.length)) reader.stop();
        read.push(`${type} ${flags} ${id} ${bytes.toString('hex', start, end)}`);
      },
      frameTooLarge: () => {
        read.push('too large');
        reader.close();
      },
    },
    maxFrameBytes,
    clientPreface.length,
  );
  return { read, reader };
}

function readWhole(bytes: Buffer): string[] {
  const { read, reader } = collector();
  reader.push(Buffer.from(bytes));
  return read;
}

const frame = fc
  .tuple(fc.nat(255), fc.nat(255), fc.nat(0xffffffff), fc.uint8Array({ maxLength: 80 }))
  .map(([type, flags, id, payload]) => http2Frame(type, flags, id, Buffer.from(payload)));
const tooLarge = fc.constant(http2Frame(0, 0, 1, Buffer.alloc(maxFrameBytes + 1)).subarray(0, 30));
const rest = fc.oneof({ weight: 3, arbitrary: fc.constant(Buffer.alloc(0)) }, tooLarge, frame);

/** Frames, the last of which may be too large or incomplete. */
const stream = fc
  .tuple(fc.array(frame, { maxLength: 12 }), rest, fc.nat(30))
  .map(([frames, last, cut]) => [http2Preface, ...frames, last.subarray(0, Math.max(0, last.length - cut))])
  .map((parts) => Buffer.concat(parts));

describe('the frames are the same', () => {
  test('byte by byte', () => {
    fc.assert(
      fc.property(stream, (bytes) => {
        const { read, reader } = collector();
        for (const byte of bytes) reader.push(Buffer.from([byte]));
        expect(read).toEqual(readWhole(bytes));
      }),
    );
  });

  test('cut at each position', () => {
    fc.assert(
      fc.property(stream, (bytes) => {
        const whole = readWhole(bytes);
        for (let at = 0; at <= bytes.length; at++) {
          const { read, reader } = collector();
          reader.push(bytes.subarray(0, at));
          reader.push(bytes.subarray(at));
          expect(read, `cut at ${at}`).toEqual(whole);
        }
      }),
      { numRuns: 30 },
    );
  });

  test('in pieces of any sizes, with stops at any frames and resumptions at any pieces', () => {
    const sizes = fc.array(fc.nat(60), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(stream, sizes, fc.array(fc.nat(12)), (bytes, pieces, stops) => {
        const { read, reader } = collector(new Set(stops));
        const whole = readWhole(bytes);
        let at = 0;
        for (let i = 0; at < bytes.length; i++) {
          const size = 1 + (pieces[i % pieces.length] ?? 0);
          reader.push(bytes.subarray(at, at + size));
          at += size;
          if (size % 2 === 0 && reader.isStopped && !read.includes('too large')) reader.resume();
        }
        while (reader.isStopped && !read.includes('too large')) reader.resume();
        expect(read).toEqual(whole);
      }),
    );
  });
});

test('a frame of the largest size is read whole and byte by byte, and a larger one is refused by its head', () => {
  const largest = Buffer.concat([http2Preface, http2Frame(0, 1, 3, Buffer.alloc(maxFrameBytes, 7))]);
  const { read, reader } = collector();
  for (const byte of largest) reader.push(Buffer.from([byte]));
  expect(read).toEqual(readWhole(largest));
  expect(reader.heldBytes).toBe(0);
  expect(readWhole(Buffer.concat([http2Preface, Buffer.from([0, 0x40, 1, 0, 0, 0, 0, 0, 1])]))).toEqual(['too large']);
});

test('an incomplete frame holds memory for what has arrived, and not for what it announces', () => {
  const { reader } = collector();
  reader.push(http2Preface);
  reader.push(http2Frame(0, 0, 1, Buffer.alloc(maxFrameBytes)).subarray(0, 100));
  expect(reader.isPartial).toBe(true);
  expect(reader.heldBytes).toBeLessThan(300);
});

test('after it is closed, also within a frame, it passes nothing on and holds nothing', () => {
  let frames = 0;
  const reader = new FrameReader({ frame: () => closeAt(++frames), frameTooLarge: () => {} }, maxFrameBytes, 0);
  const closeAt = (count: number): void => {
    if (count === 2) reader.close();
  };
  const ping = http2Frame(6, 0, 0, Buffer.alloc(8));
  reader.push(Buffer.concat([ping, ping, ping, ping.subarray(0, 5)]));
  reader.push(ping);
  expect(frames).toBe(2);
  expect(reader.isPartial).toBe(false);
});

test('the reserved bit is no part of a number', () => {
  expect(readUint31(Buffer.from([0xff, 0xff, 0xff, 0xff]), 0)).toBe(2 ** 31 - 1);
  expect(readUint31(Buffer.from([0x80, 0, 0, 1]), 0)).toBe(1);
});
