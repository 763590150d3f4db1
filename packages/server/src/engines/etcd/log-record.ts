import { nextPosition } from '../chain-hash.ts';
import type { LoggedEntry, Position } from '../log-engine.ts';
import { FrameCutter } from './frames.ts';
import type { LogMark } from './log-mark.ts';

/**
 * The record of one append, as the value of one key. A header (format u8 | kind u8 | index before u48 | hash before 16
 * | bytes of all records before u48 | entries u32 | body bytes u48) and then the body itself (kind 0) or its location
 * (kind 1: id 16 | part bytes u32). The body has one frame per entry. Numbers are little-endian. There is no checksum:
 * the running hash covers every byte of the body.
 */
export interface LogRecord {
  readonly before: LogMark;
  readonly count: number;
  readonly bodyBytes: number;
  readonly body: RecordBody;
}

/** In the record, or in parts under keys of its own. */
export type RecordBody =
  | { readonly kind: 'inline'; readonly bytes: Buffer }
  | { readonly kind: 'parts'; readonly id: string; readonly partBytes: number };

const format = 1;
const headerBytes = 40;
const partsBytes = 20;

export function encodeRecord(record: LogRecord): Buffer {
  const { before, count, bodyBytes, body } = record;
  const value = Buffer.alloc(headerBytes + (body.kind === 'inline' ? bodyBytes : partsBytes));
  value.writeUInt8(format, 0);
  value.writeUInt8(body.kind === 'inline' ? 0 : 1, 1);
  value.writeUIntLE(before.position.index, 2, 6);
  value.write(before.position.hash, 8, 'hex');
  value.writeUIntLE(before.bytesBefore, 24, 6);
  value.writeUInt32LE(count, 30);
  value.writeUIntLE(bodyBytes, 34, 6);
  if (body.kind === 'inline') {
    body.bytes.copy(value, headerBytes);
  } else {
    value.write(body.id, headerBytes, 'hex');
    value.writeUInt32LE(body.partBytes, headerBytes + 16);
  }
  return value;
}

/** Undefined when the value is not a record that this program can read. The body shares the value's memory. */
export function decodeRecord(bytes: Uint8Array): LogRecord | undefined {
  const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (value.length < headerBytes || value[0] !== format) return undefined;
  const bodyBytes = value.readUIntLE(34, 6);
  const head = {
    before: {
      position: { index: value.readUIntLE(2, 6), hash: value.toString('hex', 8, 24) },
      bytesBefore: value.readUIntLE(24, 6),
    },
    count: value.readUInt32LE(30),
    bodyBytes,
  };
  if (value[1] === 0 && value.length === headerBytes + bodyBytes) {
    return { ...head, body: { kind: 'inline', bytes: value.subarray(headerBytes) } };
  }
  if (value[1] !== 1 || value.length !== headerBytes + partsBytes) return undefined;
  const id = value.toString('hex', headerBytes, headerBytes + 16);
  const partBytes = value.readUInt32LE(headerBytes + 16);
  return partBytes === 0 ? undefined : { ...head, body: { kind: 'parts', id, partBytes } };
}

/** The index of the record's last entry. */
export function lastIndexOf(record: LogRecord): number {
  return record.before.position.index + record.count;
}

/** The approximate size of a record in the log, without etcd's overhead. */
export function bytesBehind(record: LogRecord): number {
  return record.before.bytesBefore + headerBytes + record.bodyBytes;
}

/** Splits a body, chunk by chunk, into its entries, with the position of each. */
export class BodyCutter {
  readonly #frames = new FrameCutter();
  #at: Position;

  constructor(before: Position) {
    this.#at = before;
  }

  /** The position after the last decoded entry. */
  get position(): Position {
    return this.#at;
  }

  /** Whether every byte so far belongs to a decoded entry. */
  get isAtEnd(): boolean {
    return this.#frames.isAtEnd;
  }

  /** The entries completed by this chunk. They may share its memory. */
  push(piece: Buffer): LoggedEntry[] {
    return this.#frames.push(piece).map((bytes) => {
      this.#at = nextPosition(this.#at, bytes);
      return { position: this.#at, bytes };
    });
  }
}
