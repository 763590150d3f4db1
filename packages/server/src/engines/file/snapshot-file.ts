import { createHash } from 'node:crypto';
import { fstatSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import { DamageError, snapshotHelp } from './damage.ts';
import { closeFile, openFile, readFully, syncData, writeFully } from './file-system.ts';

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
 * Chunks are gathered to writes of this size, and each is synced. One sync of everything at the end would make the
 * appends of that moment wait for all of it, since their syncs stand in the same queue of the disk; measured with 200
 * MB, the slowest hundredth of the appends beside it takes four times as long, and the snapshot is not ready sooner.
 */
const writeBytes = 1024 * 1024;

/** Writes a new snapshot file, synced. Resolves with its length in bytes. What `chunks` throws comes out as it is. */
export async function writeSnapshotFile(
  path: string,
  position: Position,
  chunks: AsyncIterable<Uint8Array>,
): Promise<number> {
  const fd = await openFile(path, 'w');
  try {
    const writer = new GatheringWriter(fd);
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
    await closeFile(fd);
  }
}

/** Gathers what it is given, hashes it, and writes and syncs it in portions of `writeBytes`. */
class GatheringWriter {
  readonly #fd: number;
  readonly #buffer = Buffer.allocUnsafeSlow(writeBytes);
  readonly #hash = createHash('sha256');
  #buffered = 0;
  #written = 0;

  constructor(fd: number) {
    this.#fd = fd;
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
    await writeFully(this.#fd, this.#buffer, this.#buffered, this.#written);
    await syncData(this.#fd);
    this.#written += this.#buffered;
    this.#buffered = 0;
  }
}

/** The position of the snapshot in the file. Rejects with `damaged` or `unusable`. */
export async function readSnapshotPosition(path: string): Promise<Position> {
  const fd = await openFile(path, 'r');
  try {
    return (await readHeader(fd, path)).position;
  } finally {
    await closeFile(fd);
  }
}

/**
 * The chunks of the snapshot, each verified before it is handed out, and all of them before the end. Throws
 * `damaged`.
 */
export async function* readSnapshotChunks(path: string): AsyncGenerator<Uint8Array> {
  const fd = await openFile(path, 'r');
  try {
    const hash = createHash('sha256').update((await readHeader(fd, path)).bytes);
    const fileBytes = fstatSync(fd).size;
    let offset = headerBytes;
    let count = 0;
    let bytes = 0;
    for (;;) {
      const frame = Buffer.alloc(frameHeaderBytes);
      if ((await readFully(fd, frame, offset)) < frameHeaderBytes) throw damaged(path, offset, 'it ends here');
      const length = frame.readUInt32LE(0);
      if (length === footerMark) break;
      if (length > fileBytes - offset) throw damaged(path, offset, 'a chunk is longer than the file');
      const chunk = Buffer.allocUnsafeSlow(length);
      const read = await readFully(fd, chunk, offset + frameHeaderBytes);
      if (read < length || crc32(chunk) !== frame.readUInt32LE(4))
        throw damaged(path, offset, 'a chunk fails its checksum');
      hash.update(frame).update(chunk);
      count++;
      bytes += length;
      yield chunk;
      offset += frameHeaderBytes + length;
    }
    const footer = Buffer.alloc(footerBytes + 1);
    const read = await readFully(fd, footer, offset);
    if (read !== footerBytes || !encodeFooter(count, bytes, hash.digest()).equals(footer.subarray(0, footerBytes))) {
      throw damaged(path, offset, 'the footer does not match the chunks');
    }
  } finally {
    await closeFile(fd);
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

async function readHeader(fd: number, path: string): Promise<{ position: Position; bytes: Buffer }> {
  const bytes = Buffer.alloc(headerBytes);
  const read = await readFully(fd, bytes, 0);
  if (read < headerBytes || !bytes.subarray(0, 8).equals(magic))
    throw damaged(path, 0, 'it does not begin as a snapshot');
  const version = bytes.readUInt32LE(8);
  // Other versions keep magic, version and checksum where they are.
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
