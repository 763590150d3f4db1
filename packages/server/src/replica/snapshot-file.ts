import { createHash } from 'node:crypto';
import type { Position } from '../engines/log-engine.ts';

/**
 * The file that `Maintenance.Snapshot` streams and `tenure snapshot restore` reads:
 *
 *   magic (8 bytes) | length of the head (u32) | head (JSON) | chunks, each with its length (u32) | 0 (u32)
 *   | zeros up to a multiple of 512 | SHA-256 of everything before it (32 bytes)
 *
 * The last two are what etcd's clients look for: they check that the size modulo 512 is 32. Numbers are big-endian.
 */
export interface SnapshotFileHead {
  readonly format: 1;
  /** The position in the log whose state the snapshot holds. */
  readonly position: Position;
  readonly revision: number;
  /** Decimal. */
  readonly clusterId: string;
  readonly tenureVersion: string;
  /**
   * Whether no server could append to the log any more. Otherwise servers were running, and may have acknowledged
   * writes after the snapshot.
   */
  readonly isFinal?: boolean;
}

const magic = Buffer.from('TENURESN', 'latin1');
const blockBytes = 512;
/** The SHA-256 at the end. */
export const snapshotHashBytes = 32;
/** The limit on the head and on each chunk of a valid file. */
const maxPartBytes = 16 * 1024 * 1024;

/** The bytes of a snapshot file, written as the chunks of the state arrive. */
export async function* writeSnapshotFile(
  head: SnapshotFileHead,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let length = 0;
  const count = (bytes: Uint8Array): Uint8Array => {
    hash.update(bytes);
    length += bytes.length;
    return bytes;
  };
  yield count(Buffer.concat([magic, prefixed(Buffer.from(JSON.stringify(head), 'utf8'))]));
  for await (const chunk of chunks) if (chunk.length > 0) yield count(prefixed(chunk));
  const end = length + 4;
  yield count(Buffer.alloc(4 + ((blockBytes - (end % blockBytes)) % blockBytes)));
  yield hash.digest();
}

/** Why a file is not a complete snapshot. The message is for the operator. */
export class SnapshotFileError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SnapshotFileError';
  }
}

/**
 * Reads a snapshot file from its pieces. The head comes first; `chunk` items hold the state. Throws SnapshotFileError
 * if the file is truncated, changed or of another kind; the items yielded before that must then be discarded.
 */
export async function* readSnapshotFile(
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ readonly head: SnapshotFileHead } | { readonly chunk: Uint8Array }> {
  const reader = new PieceReader(pieces[Symbol.asyncIterator]());
  const found = await reader.take(magic.length);
  if (!found.equals(magic)) throw new SnapshotFileError('this is not a snapshot of Tenure');
  const head = parseHead(await reader.part());
  yield { head };
  for (let chunk = await reader.part(); chunk.length > 0; chunk = await reader.part()) yield { chunk };
  await reader.take((blockBytes - (reader.taken % blockBytes)) % blockBytes);
  const expected = reader.digest();
  const stored = await reader.take(snapshotHashBytes);
  if (!stored.equals(expected))
    throw new SnapshotFileError('the snapshot was changed or cut short: its SHA-256 does not match');
  if (!(await reader.ended())) throw new SnapshotFileError('the snapshot continues after its end');
}

function parseHead(bytes: Buffer): SnapshotFileHead {
  let head: { readonly format: unknown };
  try {
    head = JSON.parse(bytes.toString('utf8')) as { readonly format: unknown };
  } catch {
    throw new SnapshotFileError('the head of the snapshot is damaged');
  }
  if (head.format !== 1)
    throw new SnapshotFileError(`the snapshot has format ${String(head.format)}; this version reads 1`);
  return head as SnapshotFileHead;
}

function prefixed(bytes: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(4 + bytes.length);
  framed.writeUInt32BE(bytes.length, 0);
  framed.set(bytes, 4);
  return framed;
}

/** Exact reads from pieces of any size, with a hash over all bytes read. */
class PieceReader {
  readonly #pieces: AsyncIterator<Uint8Array>;
  readonly #hash = createHash('sha256');
  #rest: Buffer = Buffer.alloc(0);
  taken = 0;

  constructor(pieces: AsyncIterator<Uint8Array>) {
    this.#pieces = pieces;
  }

  digest(): Buffer {
    return this.#hash.copy().digest();
  }

  async ended(): Promise<boolean> {
    return this.#rest.length === 0 && (await this.#pieces.next()).done === true;
  }

  async part(): Promise<Buffer> {
    const length = (await this.take(4)).readUInt32BE(0);
    if (length > maxPartBytes) throw new SnapshotFileError(`the snapshot is damaged near byte ${this.taken}`);
    return this.take(length);
  }

  async take(length: number): Promise<Buffer> {
    const parts = [this.#rest];
    let have = this.#rest.length;
    while (have < length) {
      const next = await this.#pieces.next();
      if (next.done === true) throw new SnapshotFileError(`the snapshot ends early, at byte ${this.taken + have}`);
      parts.push(Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength));
      have += next.value.length;
    }
    const all = parts.length === 1 ? this.#rest : Buffer.concat(parts, have);
    const taken = all.subarray(0, length);
    this.#rest = all.subarray(length);
    this.#hash.update(taken);
    this.taken += length;
    return taken;
  }
}
