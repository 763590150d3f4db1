import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameCutter, framesOf } from './frames.ts';
import { PartWriter } from './part-writer.ts';

const chunks = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 20 });

describe('frames', () => {
  test('are decoded as encoded, for any split of the bytes', () => {
    fc.assert(
      fc.property(chunks, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (all, sizes) => {
        const bytes = framesOf(all);
        const cutter = new FrameCutter();
        const cut: Buffer[] = [];
        for (let at = 0, piece = 0; at < bytes.length; piece++) {
          const end = at + sizes[piece % sizes.length]!;
          cut.push(...cutter.push(bytes.subarray(at, end)));
          at = end;
        }
        expect(cutter.isAtEnd).toBe(true);
        expect(cut.map((one) => one.toString('hex'))).toEqual(all.map((one) => Buffer.from(one).toString('hex')));
      }),
    );
  });

  test('that are truncated are not complete', () => {
    fc.assert(
      fc.property(chunks, fc.nat(), (all, where) => {
        const bytes = framesOf(all);
        const boundaries = new Set([0]);
        for (const { length } of all) boundaries.add([...boundaries].at(-1)! + 4 + length);
        const short = bytes.subarray(0, where % (bytes.length + 1));
        const cutter = new FrameCutter();
        cutter.push(short);
        expect(cutter.isAtEnd).toBe(boundaries.has(short.length));
      }),
    );
  });

  test('are passed on in parts of one size with the same bytes', async () => {
    await fc.assert(
      fc.asyncProperty(chunks, fc.integer({ min: 1, max: 50 }), async (all, partBytes) => {
        const parts: Buffer[] = [];
        const writer = new PartWriter(partBytes, (part, number) => {
          expect(number).toBe(parts.length);
          parts.push(Buffer.from(part));
          return Promise.resolve();
        });
        for (const one of all) await writer.writeFrame(one);
        const bytes = framesOf(all);
        expect(await writer.finish()).toBe(bytes.length);
        expect(Buffer.concat(parts)).toEqual(Buffer.from(bytes));
        for (const part of parts.slice(0, -1)) expect(part.length).toBe(partBytes);
      }),
    );
  });
});
