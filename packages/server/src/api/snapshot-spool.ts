import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The size of a piece that is read back, and of one message of a snapshot's stream, as in etcd. */
const pieceBytes = 32 * 1024;

/**
 * A snapshot for a client is first written to a file. So its size is known before the first byte is sent, and a client
 * that reads slowly, or not at all, holds a file and not the state: versions compacted while the state is being written
 * are freed only after that.
 */
export class SnapshotSpool {
  readonly #file: FileHandle;
  readonly sizeBytes: number;

  private constructor(file: FileHandle, sizeBytes: number) {
    this.#file = file;
    this.sizeBytes = sizeBytes;
  }

  /** Writes all of `chunks` to a file without a name, which is gone when it is closed or the process ends. */
  static async fill(chunks: AsyncIterable<Uint8Array>): Promise<SnapshotSpool> {
    const folder = await mkdtemp(join(tmpdir(), 'tenure-snapshot-'));
    let file: FileHandle | undefined;
    try {
      file = await open(join(folder, 'spool'), 'wx+', 0o600);
      await rm(folder, { recursive: true });
      let sizeBytes = 0;
      for await (const chunk of chunks) {
        await file.appendFile(chunk);
        sizeBytes += chunk.length;
      }
      return new SnapshotSpool(file, sizeBytes);
    } catch (error) {
      await file?.close();
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** The written bytes, in pieces. A piece is valid until the next is requested. */
  async *pieces(): AsyncGenerator<Buffer> {
    const piece = Buffer.allocUnsafe(pieceBytes);
    for (let at = 0; at < this.sizeBytes;) {
      const { bytesRead } = await this.#file.read(piece, 0, pieceBytes, at);
      if (bytesRead === 0) throw new Error('the spooled snapshot is shorter than what was written');
      at += bytesRead;
      yield piece.subarray(0, bytesRead);
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
