import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HpackEncoder } from './hpack-encoder.ts';
import { decodeBlock, fieldsOf, generousDecoder } from './testing/decoded-block.ts';
import { block } from './testing/field-arbitraries.ts';
import { HpackJsPeer } from './testing/hpack-js-peer.ts';

const settings = fc.constantFrom(0, 31, 32, 64, 100, 200, 1000, 4095, 4096, 65_536);

/** The settings that arrive before a block, and the block. */
const exchange = fc.tuple(fc.array(settings, { maxLength: 3 }), block);

const hex = (bytes: Buffer): string => bytes.toString('hex');

describe('the encoder of header blocks', () => {
  test('writes what an independent implementation reads', () => {
    fc.assert(
      fc.property(fc.array(exchange, { maxLength: 10 }), (exchanges) => {
        const encoder = new HpackEncoder();
        const peer = new HpackJsPeer(4096);
        for (const [sizes, fields] of exchanges) {
          for (const size of sizes) encoder.setPeerTableBytes(size);
          expect(peer.decode(encoder.encode(fields))).toEqual(fields.map(([name, value]) => [name, value]));
        }
      }),
    );
  });

  test('stays in step with a decoder whose limit changes', () => {
    fc.assert(
      fc.property(fc.array(exchange, { maxLength: 10 }), (exchanges) => {
        const encoder = new HpackEncoder();
        const decoder = generousDecoder();
        for (const [sizes, fields] of exchanges) {
          for (const size of sizes) {
            encoder.setPeerTableBytes(size);
            decoder.setMaxTableBytes(size);
          }
          const decoded = decodeBlock(decoder, encoder.encode(fields));
          expect(decoded).toEqual({ fields: fields.map(([name, value]) => [name, value]), isWithinLimits: true });
        }
      }),
    );
  });

  test('means the same by the same bytes while the generation stays', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(block, block), { maxLength: 5 }), (pairs) => {
        const encoder = new HpackEncoder();
        const decoder = generousDecoder();
        for (const [first, second] of pairs) {
          const before = encoder.generation;
          const bytes = encoder.encode(first);
          const fields = fieldsOf(decoder, bytes);
          if (encoder.generation !== before) continue;
          const generation = decoder.generation;
          expect(encoder.encode(first)).toEqual(bytes);
          expect(fieldsOf(decoder, bytes)).toEqual(fields);
          expect(decoder.generation).toBe(generation);
          fieldsOf(decoder, encoder.encode(second));
        }
      }),
    );
  });

  test('announces the smallest size in between, and then the last', () => {
    const encoder = new HpackEncoder();
    encoder.encode([['x-a', 'b']]);
    encoder.setPeerTableBytes(0);
    encoder.setPeerTableBytes(100);
    encoder.setPeerTableBytes(65_536);
    // 0, and 4096 as 31 + 4065.
    expect(hex(encoder.encode([]))).toBe('203fe11f');
    expect(hex(encoder.encode([]))).toBe('');
    encoder.setPeerTableBytes(8192);
    expect(hex(encoder.encode([]))).toBe('');
    encoder.setPeerTableBytes(10);
    expect(hex(encoder.encode([]))).toBe('2a');
    encoder.setPeerTableBytes(30);
    encoder.setPeerTableBytes(10);
    expect(hex(encoder.encode([]))).toBe('');
  });

  test('changes the generation with each size update', () => {
    const encoder = new HpackEncoder();
    const start = encoder.generation;
    encoder.setPeerTableBytes(100);
    const changed = encoder.generation;
    encoder.encode([]);
    expect(new Set([start, changed, encoder.generation]).size).toBe(3);
  });

  test('writes a secret as never indexed, also where a table has its name', () => {
    const encoder = new HpackEncoder();
    expect(hex(encoder.encode([[':method', 'GET', 'never']]))).toBe('1203474554');
    expect(hex(encoder.encode([['authorization', '!', 'never']]))).toBe('1f080121');
    expect(encoder.generation).toBe(new HpackEncoder().generation);
  });

  test('does not empty the table for an entry that is larger than it', () => {
    const encoder = new HpackEncoder();
    encoder.encode([['x-a', 'b']]);
    const { generation } = encoder;
    encoder.encode([['x-b', 'b'.repeat(4096)]]);
    expect(encoder.generation).toBe(generation);
    expect(hex(encoder.encode([['x-a', 'b']]))).toBe('be');
  });

  test('changes nothing when it refuses a char or a target without room', () => {
    const encoder = new HpackEncoder();
    const { generation } = encoder;
    expect(() =>
      encoder.encode([
        ['x-a', 'b'],
        ['x-c', '\u0100'],
      ]),
    ).toThrow(RangeError);
    expect(() => encoder.writeField(Buffer.alloc(100), 0, 'x-c', '\u0100')).toThrow(RangeError);
    expect(() => encoder.writeField(Buffer.alloc(10), 0, 'x-c', 'b')).toThrow(RangeError);
    encoder.setPeerTableBytes(0);
    expect(() => encoder.beginBlock(Buffer.alloc(2), 0)).toThrow(RangeError);
    expect(hex(encoder.encode([]))).toBe('20');
    expect(encoder.generation).toBeGreaterThan(generation);
  });
});
