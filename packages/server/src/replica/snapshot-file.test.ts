import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readSnapshotFile, writeSnapshotFile, SnapshotFileError, type SnapshotFileHead } from './snapshot-file.ts';

const head: SnapshotFileHead = {
  format: 1,
  position: { index: 7, hash: 'ab'.repeat(16) },
  revision: 12,
  clusterId: '18446744073709551615',
  tenureVersion: '0.1.0',
};

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

async function written(chunks: readonly Uint8Array[]): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of writeSnapshotFile(head, each(chunks))) parts.push(part);
  return Buffer.concat(parts);
}

async function read(file: Buffer, pieceBytes: number): Promise<{ head: SnapshotFileHead | undefined; bytes: Buffer }> {
  const pieces: Buffer[] = [];
  for (let at = 0; at < file.length; at += pieceBytes) pieces.push(file.subarray(at, at + pieceBytes));
  let found: SnapshotFileHead | undefined;
  const chunks: Uint8Array[] = [];
  for await (const item of readSnapshotFile(each(pieces))) {
    if ('head' in item) found = item.head;
    else chunks.push(Buffer.from(item.chunk));
  }
  return { head: found, bytes: Buffer.concat(chunks) };
}

const chunkList = fc.array(fc.uint8Array({ maxLength: 700 }), { maxLength: 6 });

describe('snapshot files', () => {
  test('have the size that clients check, end in a SHA-256, and can be read from pieces of any size', async () => {
    await fc.assert(
      fc.asyncProperty(chunkList, fc.integer({ min: 1, max: 900 }), async (chunks, pieceBytes) => {
        const file = await written(chunks);
        expect(file.length % 512).toBe(32);
        expect(file.subarray(-32)).toEqual(createHash('sha256').update(file.subarray(0, -32)).digest());
        const back = await read(file, pieceBytes);
        expect(back.head).toEqual(head);
        expect(back.bytes).toEqual(Buffer.concat(chunks));
      }),
      { numRuns: 60 },
    );
  });

  test('are refused with a flipped bit or a missing end', async () => {
    const file = await written([Buffer.from('some state'), Buffer.alloc(300, 7)]);
    await fc.assert(
      fc.asyncProperty(fc.nat(file.length * 8 - 1), fc.nat(file.length - 1), async (bit, length) => {
        const flipped = Buffer.from(file);
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        await expect(read(flipped, 100)).rejects.toBeInstanceOf(SnapshotFileError);
        await expect(read(file.subarray(0, length), 100)).rejects.toBeInstanceOf(SnapshotFileError);
      }),
      { numRuns: 200 },
    );
  });
});
