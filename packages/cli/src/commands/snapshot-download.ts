import { createHash } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { CliError } from '../cli-error.ts';

/** A snapshot ends with the SHA-256 of all bytes before it, which are padded to whole blocks. */
const digestBytes = 32;
const blockBytes = 512;

/**
 * Writes a streamed snapshot to `path`, readable by its owner only. A previous file is replaced only once the new one
 * is complete, verified by its digest and synced to disk. Resolves with the size in bytes.
 */
export async function saveSnapshot(blobs: AsyncIterable<Uint8Array>, path: string): Promise<number> {
  const partPath = `${path}.part`;
  const file = await open(partPath, 'w', 0o600);
  try {
    const check = new DigestCheck();
    for await (const blob of blobs) {
      check.push(blob);
      await file.writeFile(blob);
    }
    const sizeBytes = check.finish();
    await file.sync();
    await file.close();
    await rename(partPath, path);
    return sizeBytes;
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(partPath, { force: true });
    throw error;
  }
}

/** Verifies a stream by its last bytes, which are the digest of all bytes before them. */
class DigestCheck {
  readonly #hash = createHash('sha256');
  #held: Buffer = Buffer.alloc(0);
  #sizeBytes = 0;

  push(bytes: Uint8Array): void {
    const all = Buffer.concat([this.#held, bytes]);
    const known = Math.max(0, all.length - digestBytes);
    this.#hash.update(all.subarray(0, known));
    this.#held = Buffer.from(all.subarray(known));
    this.#sizeBytes += bytes.length;
  }

  finish(): number {
    const whole = this.#sizeBytes > digestBytes && this.#sizeBytes % blockBytes === digestBytes;
    if (!whole || !this.#hash.digest().equals(this.#held)) {
      throw new CliError('failed', 'the snapshot arrived cut short or changed: nothing was saved, try again');
    }
    return this.#sizeBytes;
  }
}
