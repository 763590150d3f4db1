import { createHash } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { CliError } from '../cli-error.ts';

/** What ends a snapshot: the SHA-256 of all that came before it, which is padded to whole blocks. */
const digestBytes = 32;
const blockBytes = 512;

/**
 * Writes a snapshot as a server streams it to `path`, for its owner alone, and puts it in place only once it is
 * whole, its digest is right and it is on the disk. What had that name before is replaced; after a failure it is
 * still there. Resolves with its size in bytes.
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

/** Holds back the last bytes of a stream, which are the digest of the others. */
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
