import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import { DamageError, snapshotHelp } from './damage.ts';
import type { FileSystem } from './file-system.ts';
import type { OpenFile } from './open-file.ts';

/**
 * A snapshot: a header of 64 bytes (magic 8 | version u32 | index u48 | hash 16 | CRC-32 of these | zeros), frames of
 * length u32 | CRC-32 u32 | bytes, one for each chunk, and a footer of 52 bytes: 0xffffffff | chunks u48 | bytes of
 * all chunks u48 | SHA-256 of everything before the footer | CRC-32 of the footer. Numbers are little-endian.
 */
const magic = Buffer.from('TENURSNP', 'latin1');
const formatVersion = 1;
const headerBytes = 64;
const frameHeaderBytes = 8;
const footerBytes = 52;
const footerMark = 0xffffffff;

/**
 * Chunks are combined into writes of this size, and each is synced. A single sync at the end would make the appends of
 * that moment wait for all of it, since their syncs are in the same queue of the disk; measured with 200 MB, the
 * slowest hundredth of the concurrent appends takes four times as long, and the snapshot is not ready sooner.
 */
const writeBytes = 1024 * 1024;

/** Writes a new snapshot file, synced. Resolves with its length in bytes. What `chunks` throws comes out as it is. */
export async function writeSnapshotChunks(
  files: FileSystem,
  path: string,
  position: Position,
  chunks: AsyncIterable<Uint8Array>,
): Promise<number> {
  const file = await files.open(path, 'w');
  try {
    const writer = new GatheringWriter(file);
    await writer.write(encodeHeader(position));
    let count = 0;
    let bytes = 0;
    const frame = Buffer.alloc(frameHeaderBytes);
    for await (const chunk of chunks) {
      frame.writeUInt32LE(chunk.length, 0);
      frame.writeUInt32LE(crc32(chunk), 4);
      await writer.write(frame);
      await writer.write(chunk);
      count++;
      bytes += chunk.length;
    }
    return await writer.finish(encodeFooter(count, bytes, writer.digest()));
  } finally {
    await file.close();
  }
}

/** Collects the data, hashes it, and writes and syncs it in portions of `writeBytes`. */
class GatheringWriter {
  readonly #file: OpenFile;
  readonly #buffer = Buffer.allocUnsafeSlow(writeBytes);
  readonly #hash = createHash('sha256');
  #buffered = 0;
  #written = 0;

  constructor(file: OpenFile) {
    this.#file = file;
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes);
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + writeBytes - this.#buffered);
      this.#buffer.set(part, this.#buffered);
      this.#buffered += part.length;
      at += part.length;
      if (this.#buffered === writeBytes) await this.#flush();
    }
  }

  digest(): Buffer {
    return this.#hash.copy().digest();
  }

  async finish(footer: Buffer): Promise<number> {
    await this.write(footer);
    await this.#flush();
    return this.#written;
  }

  async #flush(): Promise<void> {
    await this.#file.writeFully(this.#buffer, this.#buffered, this.#written);
    await this.#file.syncData();
    this.#written += this.#buffered;
    this.#buffered = 0;
  }
}

/** The position of the snapshot in the file. Rejects with `damaged` or `unusable`. */
export async function readSnapshotPosition(files: FileSystem, path: string): Promise<Position> {
  const file = await files.open(path, 'r');
  try {
    return (await readHeader(file, path)).position;
  } finally {
    await file.close();
  }
}

/**
 * The chunks of the snapshot, each verified before it is returned, and all of them before the end. Throws `damaged`.
 */
export async function* readSnapshotChunks(files: FileSystem, path: string): AsyncGenerator<Uint8Array> {
  const file = await files.open(path, 'r');
  try {
    const hash = createHash('sha256').update((await readHeader(file, path)).bytes);
    const fileBytes = file.sizeBytes;
    let offset = headerBytes;
    let count = 0;
    let bytes = 0;
    for (;;) {
      const frame = Buffer.alloc(frameHeaderBytes);
      if ((await file.readFully(frame, offset)) < frameHeaderBytes) throw damaged(path, offset, 'it ends here');
      const length = frame.readUInt32LE(0);
      if (length === footerMark) break;
      if (length > fileBytes - offset) throw damaged(path, offset, 'a chunk is longer than the file');
      const chunk = Buffer.allocUnsafeSlow(length);
      const read = await file.readFully(chunk, offset + frameHeaderBytes);
      if (read < length || crc32(chunk) !== frame.readUInt32LE(4))
        throw damaged(path, offset, 'a chunk fails its checksum');
      hash.update(frame).update(chunk);
      count++;
      bytes += length;
      yield chunk;
      offset += frameHeaderBytes + length;
    }
    const footer = Buffer.alloc(footerBytes + 1);
    const read = await file.readFully(footer, offset);
    if (read !== footerBytes || !encodeFooter(count, bytes, hash.digest()).equals(footer.subarray(0, footerBytes))) {
      throw damaged(path, offset, 'the footer does not match the chunks');
    }
  } finally {
    await file.close();
  }
}

function encodeHeader(position: Position): Buffer {
  const header = Buffer.alloc(headerBytes);
  magic.copy(header, 0);
  header.writeUInt32LE(formatVersion, 8);
  header.writeUIntLE(position.index, 12, 6);
  header.write(position.hash, 18, 'hex');
  header.writeUInt32LE(crc32(header.subarray(0, 34)), 34);
  return header;
}

async function readHeader(file: OpenFile, path: string): Promise<{ position: Position; bytes: Buffer }> {
  const bytes = Buffer.alloc(headerBytes);
  const read = await file.readFully(bytes, 0);
  if (read < headerBytes || !bytes.subarray(0, 8).equals(magic))
    throw damaged(path, 0, 'it does not begin as a snapshot');
  const version = bytes.readUInt32LE(8);
  // Other versions keep magic, version and checksum at the same place.
  if (bytes.readUInt32LE(34) !== crc32(bytes.subarray(0, 34))) throw damaged(path, 0, 'its header fails its checksum');
  if (version !== formatVersion) {
    const message = `${path} has snapshot format ${version}, this program reads ${formatVersion}: run the newer Tenure`;
    throw new EngineError('unusable', message);
  }
  const position = { index: bytes.readUIntLE(12, 6), hash: bytes.toString('hex', 18, 34) };
  if (!encodeHeader(position).equals(bytes)) throw damaged(path, 0, 'its header fails its checksum');
  return { position, bytes };
}

function encodeFooter(count: number, bytes: number, hash: Buffer): Buffer {
  const footer = Buffer.alloc(footerBytes);
  footer.writeUInt32LE(footerMark, 0);
  footer.writeUIntLE(count, 4, 6);
  footer.writeUIntLE(bytes, 10, 6);
  hash.copy(footer, 16);
  footer.writeUInt32LE(crc32(footer.subarray(0, 48)), 48);
  return footer;
}

function damaged(path: string, offset: number, what: string): DamageError {
  return new DamageError({ in: 'snapshot', file: path, offset, lastGoodIndex: undefined, what }, snapshotHelp);
}
