import fc from 'fast-check';
import { expect, test } from 'vitest';
import { minReferencedBytes, OutputBuffer, releaseSlabs } from './output-buffer.ts';

const step = fc.oneof(
  fc.record({ kind: fc.constant('uint16' as const), value: fc.nat(0xffff) }),
  fc.record({ kind: fc.constant('uint32' as const), value: fc.nat(0xffffffff) }),
  fc.record({ kind: fc.constant('head' as const), value: fc.nat(0xffffff) }),
  fc.record({ kind: fc.constant('bytes' as const), value: fc.nat(200) }),
  fc.record({ kind: fc.constant('bytes' as const), value: fc.integer({ min: 4000, max: 20_000 }) }),
  fc.record({ kind: fc.constant('take' as const), value: fc.nat(1) }),
);

/** What the step writes. */
function written(kind: string, value: number, seed: number): Buffer {
  if (kind === 'bytes') return Buffer.alloc(value, seed % 256);
  const bytes = Buffer.alloc(kind === 'head' ? 9 : kind === 'uint32' ? 4 : 2);
  if (kind === 'uint16') bytes.writeUInt16BE(value);
  else bytes.writeUInt32BE(kind === 'head' ? value * 256 + 8 : value);
  if (kind === 'head') bytes.writeUInt32BE(2 ** 31 - 1 - seed, 5);
  if (kind === 'head') bytes[4] = 5;
  return bytes;
}

test('the parts of a batch are what was written, in its order, and stay until it is released', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const output = new OutputBuffer();
      const expected: Buffer[] = [];
      const batches: { parts: readonly Buffer[]; expected: Buffer; slabs: readonly Buffer[] }[] = [];
      const take = (): void => {
        const batch = output.take();
        const bytes = Buffer.concat(expected.splice(0));
        expect(batch?.bytes ?? 0).toBe(bytes.length);
        expect(output.bytes).toBe(0);
        if (batch !== undefined) batches.push({ ...batch, expected: bytes });
      };
      steps.forEach(({ kind, value }, i) => {
        if (kind === 'take') return take();
        const bytes = written(kind, value, i);
        expected.push(bytes);
        if (kind === 'uint16') output.uint16(value);
        else if (kind === 'uint32') output.uint32(value);
        else if (kind === 'head') output.head(8, 5, 2 ** 31 - 1 - i, value);
        else output.bytesOf(Buffer.concat([Buffer.alloc(3), bytes, Buffer.alloc(1)]), 3, 3 + value);
        expect(output.bytes).toBe(expected.reduce((sum, each) => sum + each.length, 0));
      });
      take();
      for (const batch of batches) expect(Buffer.concat(batch.parts).equals(batch.expected)).toBe(true);
      for (const { slabs } of batches) releaseSlabs(slabs);
    }),
  );
});

test('many bytes are passed on without a copy, and counted as memory unless their writer counts them', () => {
  const output = new OutputBuffer();
  const large = Buffer.alloc(minReferencedBytes, 1);
  output.bytesOf(large, 0, large.length);
  output.bytesOf(large, 0, large.length, false);
  const batch = output.take();
  expect(batch?.parts).toEqual([large, large]);
  expect(batch?.parts[0]).toBe(large);
  expect(batch?.heldBytes).toBe(large.length);
  large.fill(2);
  expect(batch?.parts[1]?.[0]).toBe(2);
});

test('a released slab serves the next batch', () => {
  const write = (): readonly Buffer[] => {
    const output = new OutputBuffer();
    output.uint32(1);
    return output.take()?.slabs ?? [];
  };
  const first = write();
  releaseSlabs(first);
  expect(write()[0]).toBe(first[0]);
});
