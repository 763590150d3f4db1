import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HeldData } from './held-data.ts';

test('returns the bytes in their order, whatever is pushed and taken between', () => {
  const pushed = fc.uint8Array({ maxLength: 40_000, size: 'max' });
  const small = fc.uint8Array({ minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(fc.array(fc.oneof(small, pushed, fc.constant(undefined)), { maxLength: 40 }), (steps) => {
      const held = new HeldData();
      const expected: Buffer[] = [];
      const taken: Buffer[] = [];
      let heldBytes = 0;
      const take = (): void => {
        const block = held.shift();
        if (block === undefined) return;
        heldBytes -= block.length;
        taken.push(block);
      };
      for (const bytes of steps) {
        if (bytes === undefined) take();
        else {
          // Bytes around it, none of which may be taken.
          const frame = Buffer.concat([Buffer.alloc(2, 0xee), bytes, Buffer.alloc(1, 0xee)]);
          held.push(frame, 2, 2 + bytes.length);
          frame.fill(0xdd);
          expected.push(Buffer.from(bytes));
          heldBytes += bytes.length;
        }
        expect(held.bytes).toBe(heldBytes);
      }
      while (held.bytes > 0) take();
      expect(held.shift()).toBeUndefined();
      expect(Buffer.concat(taken).equals(Buffer.concat(expected))).toBe(true);
    }),
  );
});

test('single bytes share few blocks', () => {
  const held = new HeldData();
  for (let i = 0; i < 262_144; i++) held.push(Buffer.from([i % 256]), 0, 1);
  let blocks = 0;
  while (held.shift() !== undefined) blocks += 1;
  expect(blocks).toBeLessThan(30);
});
