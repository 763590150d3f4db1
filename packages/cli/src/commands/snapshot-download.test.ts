import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { saveSnapshot } from './snapshot-download.ts';

const folder = mkdtempSync(join(tmpdir(), 'tenure-download-'));
const path = join(folder, 'snapshot');
afterAll(() => rmSync(folder, { recursive: true }));

/** A snapshot as a server sends it: whole blocks and their digest. */
function whole(blocks: number): Buffer {
  const body = Buffer.alloc(blocks * 512, 'abc');
  return Buffer.concat([body, createHash('sha256').update(body).digest()]);
}

async function* cut(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const next = at + (sizes[turn % sizes.length] ?? 1);
    yield bytes.subarray(at, next);
    at = next;
  }
}

test('saves a snapshot that only its owner can read, for any chunk sizes', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 4 }), sizes, async (blocks, cuts) => {
      const bytes = whole(blocks);
      expect(await saveSnapshot(cut(bytes, cuts), path)).toBe(bytes.length);
      expect(readFileSync(path).equals(bytes)).toBe(true);
    }),
    { numRuns: 25 },
  );
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('keeps the previous file when a snapshot is truncated, changed or interrupted', async () => {
  writeFileSync(path, 'the old one');
  const bytes = whole(2);
  const changed = Buffer.from(bytes);
  changed[7] = 0;
  const broken = async function* (): AsyncGenerator<Uint8Array> {
    yield bytes.subarray(0, 512);
    throw new Error('the connection broke');
  };
  await expect(saveSnapshot(cut(bytes.subarray(0, 544), [100]), path)).rejects.toThrow('cut short or changed');
  await expect(saveSnapshot(cut(bytes.subarray(0, 1000), [100]), path)).rejects.toThrow('cut short or changed');
  await expect(saveSnapshot(cut(changed, [100]), path)).rejects.toThrow('cut short or changed');
  await expect(saveSnapshot(cut(Buffer.alloc(0), [1]), path)).rejects.toThrow('cut short or changed');
  await expect(saveSnapshot(broken(), path)).rejects.toThrow('the connection broke');
  expect(readFileSync(path, 'utf8')).toBe('the old one');
  expect(readdirSync(folder)).toEqual(['snapshot']);
});
