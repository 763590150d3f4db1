import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HpackDecoder } from './hpack-decoder.ts';
import { HpackEncoder } from './hpack-encoder.ts';
import { HpackError, type HpackErrorCode } from './hpack-error.ts';
import { decodeBlock, fieldsOf, generousDecoder } from './testing/decoded-block.ts';
import { block } from './testing/field-arbitraries.ts';
import { HpackJsPeer } from './testing/hpack-js-peer.ts';

function refuse(code: HpackErrorCode, ...octets: number[]): void {
  refuseNext(generousDecoder(), code, ...octets);
}

function refuseNext(decoder: HpackDecoder, code: HpackErrorCode, ...octets: number[]): void {
  expect(() => fieldsOf(decoder, Buffer.from(octets))).toThrow(new HpackError(code));
}

const names = (prefix: string, count: number): [string, string][] =>
  Array.from({ length: count }, (_, index) => [`${prefix}${index}`, 'v']);

describe('the decoder of header blocks', () => {
  test('reads what an independent implementation writes', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(block, fc.boolean()), { maxLength: 10 }), (blocks) => {
        const peer = new HpackJsPeer(4096);
        const decoder = generousDecoder();
        for (const [fields, huffman] of blocks) {
          const decoded = decodeBlock(decoder, peer.encode(fields, huffman));
          expect(decoded).toEqual({ fields: fields.map(([name, value]) => [name, value]), isWithinLimits: true });
        }
      }),
    );
  });

  test('reads any bytes, or refuses them with an HpackError', () => {
    const octet = fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(0x00, 0x40, 0x82, 0xbe, 0x01, 0x81, 0x7f, 0xff));
    const limits = { maxTableBytes: 4096, maxHeaderListBytes: 500, maxHeaderPairs: 20 };
    fc.assert(
      fc.property(fc.array(fc.array(octet, { maxLength: 200, size: 'max' }), { maxLength: 4 }), (blocks) => {
        const decoder = new HpackDecoder(limits);
        try {
          for (const octets of blocks) {
            const { fields } = decodeBlock(decoder, Buffer.from(octets));
            expect(fields.length).toBeLessThanOrEqual(limits.maxHeaderPairs);
          }
        } catch (error) {
          expect(error).toBeInstanceOf(HpackError);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('refuses a block that is cut inside a field, and reads the fields before a cut between two', () => {
    fc.assert(
      fc.property(block, (fields) => {
        const encoder = new HpackEncoder();
        const target = Buffer.alloc(fields.reduce((sum, [n, v]) => sum + HpackEncoder.fieldBytesMax(n, v), 10));
        const ends = [encoder.beginBlock(target, 0)];
        for (const [name, value, mode] of fields) {
          ends.push(encoder.writeField(target, ends.at(-1) ?? 0, name, value, mode));
        }
        for (let cut = 0; cut < (ends.at(-1) ?? 0); cut++) {
          const read = (): readonly unknown[] => fieldsOf(generousDecoder(), target.subarray(0, cut));
          if (ends.includes(cut)) expect(read()).toHaveLength(ends.indexOf(cut));
          else expect(read).toThrow(new HpackError('Truncated'));
        }
      }),
      { numRuns: 20 },
    );
  });

  test('reads a Uint8Array that is no Buffer', () => {
    const decoder = generousDecoder();
    const bytes = Uint8Array.of(0, 0x82, 0x40, 0x01, 0x61, 0x01, 0x62);
    expect(fieldsOf(decoder, bytes.subarray(1))).toEqual([
      [':method', 'GET'],
      ['a', 'b'],
    ]);
    expect(decoder.decode(bytes.subarray(1), 0, 1, () => {})).toBe(true);
  });
});

describe('the errors of the decoder', () => {
  test('an index without an entry', () => {
    refuse('BadIndex', 0x80);
    refuse('BadIndex', 0xbe);
    refuse('BadIndex', 0x40 | 62, 0x01, 0x61);
    refuse('BadIndex', 0xff, 0xff, 0xff, 0x7f);
  });

  test('an integer with too many octets, and one that ends with the block', () => {
    refuse('Overflow', 0xff, 0x80, 0x80, 0x80, 0x80);
    refuse('Overflow', 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f);
    refuse('Truncated', 0xff, 0x80, 0x80, 0x80);
    refuse('Truncated', 0x00, 0x7f, 0xff, 0xff, 0xff, 0x7f);
  });

  test('size updates: after a field, too many, too large', () => {
    refuse('MisplacedSizeUpdate', 0x82, 0x20);
    refuse('TooManySizeUpdates', 0x20, 0x20, 0x20, 0x20, 0x20);
    refuse('SizeUpdateTooLarge', 0x3f, 0xe2, 0x1f);
    expect(fieldsOf(generousDecoder(), Buffer.of(0x20, 0x3f, 0xe1, 0x1f, 0x82))).toHaveLength(1);
  });

  test('a string with a bad code', () => {
    refuse('BadHuffman', 0x00, 0x81, 0xff, 0x00);
  });

  test('a size update that the reduced setting requires', () => {
    const reduced = generousDecoder();
    reduced.setMaxTableBytes(100);
    reduced.setMaxTableBytes(4096);
    refuseNext(reduced, 'MissingSizeUpdate', 0x82);

    const half = generousDecoder();
    half.setMaxTableBytes(10);
    half.setMaxTableBytes(4096);
    refuseNext(half, 'MissingSizeUpdate', 0x2b, 0x82);

    const served = generousDecoder();
    served.setMaxTableBytes(10);
    served.setMaxTableBytes(4096);
    expect(fieldsOf(served, Buffer.of(0x2a, 0x3f, 0xe1, 0x1f, 0x82))).toHaveLength(1);
    expect(fieldsOf(served, Buffer.of(0x82))).toHaveLength(1);
  });

  test('no size update is due where the table is small enough already', () => {
    const decoder = generousDecoder();
    expect(fieldsOf(decoder, Buffer.of(0x25, 0x82))).toHaveLength(1);
    decoder.setMaxTableBytes(10);
    decoder.setMaxTableBytes(4096);
    expect(fieldsOf(decoder, Buffer.of(0x3f, 0xe1, 0x1f, 0x82))).toHaveLength(1);
  });

  test('a small setting counts from its acknowledgement', () => {
    const decoder = generousDecoder(0);
    expect(fieldsOf(decoder, Buffer.of(0x40, 0x01, 0x61, 0x01, 0x62, 0xbe))).toHaveLength(2);
    decoder.setMaxTableBytes(0);
    expect(fieldsOf(decoder, Buffer.of(0x20, 0x40, 0x01, 0x61, 0x01, 0x62))).toEqual([['a', 'b']]);
    refuseNext(decoder, 'BadIndex', 0xbe);
  });
});

describe('the limits of the decoder', () => {
  test('end the list of fields, and the table still learns the rest', () => {
    fc.assert(
      fc.property(block, fc.array(block, { maxLength: 3 }), fc.nat({ max: 3000 }), fc.nat({ max: 20 }), (...drawn) => {
        const [first, others, maxHeaderListBytes, maxHeaderPairs] = drawn;
        const encoder = new HpackEncoder();
        const limited = new HpackDecoder({ maxTableBytes: 4096, maxHeaderListBytes, maxHeaderPairs });
        for (const fields of [first, ...others]) {
          const expected: (readonly [string, string])[] = [];
          let bytes = 0;
          for (const [name, value] of fields) {
            bytes += name.length + value.length + 32;
            if (bytes > maxHeaderListBytes || expected.length === maxHeaderPairs) break;
            expected.push([name, value]);
          }
          const decoded = decodeBlock(limited, encoder.encode(fields));
          expect(decoded).toEqual({ fields: expected, isWithinLimits: expected.length === fields.length });
        }
      }),
    );
  });

  test('bound what a large entry named thousands of times costs', () => {
    const decoder = new HpackDecoder({ maxTableBytes: 4096, maxHeaderListBytes: 16_384, maxHeaderPairs: 100 });
    const encoder = new HpackEncoder();
    fieldsOf(decoder, encoder.encode([['x-bomb', 'b'.repeat(4000)]]));
    const { fields, isWithinLimits } = decodeBlock(decoder, Buffer.alloc(16_384, 0xbe));
    expect(isWithinLimits).toBe(false);
    expect(fields).toHaveLength(4);
    expect(fieldsOf(decoder, Buffer.of(0xbe))).toHaveLength(1);
  });

  test('an entry that is larger than the table empties it', () => {
    const decoder = generousDecoder();
    const peer = new HpackJsPeer(4096);
    fieldsOf(decoder, peer.encode(names('x-', 5), true));
    expect(fieldsOf(decoder, peer.encode([['x-large', '!'.repeat(5000)]], false))).toHaveLength(1);
    refuseNext(decoder, 'BadIndex', 0xbe);
  });

  test('the generation changes with the table and with the setting, and else stays', () => {
    const decoder = generousDecoder();
    const steps: (() => void)[] = [
      () => fieldsOf(decoder, Buffer.of(0x40, 0x01, 0x61, 0x01, 0x62)),
      () => fieldsOf(decoder, Buffer.of(0x3f, 0xe1, 0x1f)),
      () => decoder.setMaxTableBytes(4096),
    ];
    for (const step of steps) {
      const { generation } = decoder;
      fieldsOf(decoder, Buffer.of(0x82, 0x00, 0x01, 0x61, 0x01, 0x62));
      expect(decoder.generation).toBe(generation);
      step();
      expect(decoder.generation).not.toBe(generation);
    }
  });
});
