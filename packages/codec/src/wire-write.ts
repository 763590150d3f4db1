import { writeLatin1 } from './latin1.ts';

/*
 * Writes protobuf's wire format. A message is measured first and written second, into a buffer of exactly that size:
 * nothing is copied twice, and no buffer grows. Every write returns the position after it; sizes and positions are in
 * bytes.
 *
 * proto3 omits a field that has its default; the functions for a whole field do that, so that callers need not check.
 */

const twoTo32 = 0x1_0000_0000;
/** One bigint in, two halves out. */
const halves = new DataView(new ArrayBuffer(8));

/** `value` is a safe integer; a negative one takes ten bytes, as int64 has it. */
export function varintSize(value: number): number {
  if (value < 0x80) return value < 0 ? 10 : 1;
  if (value < 0x4000) return 2;
  return value < 0x1000_0000 ? (value < 0x20_0000 ? 3 : 4) : longVarintSize(value);
}

function longVarintSize(value: number): number {
  if (value < 2 ** 35) return 5;
  if (value < 2 ** 42) return 6;
  return value < 2 ** 49 ? 7 : 8;
}

export function writeVarint(out: Buffer, at: number, value: number): number {
  if (value >= 0x80 || value < 0) return writeLongVarint(out, at, value);
  out[at] = value;
  return at + 1;
}

/** A separate function, so that the one byte that most varints have is written without a call. */
function writeLongVarint(out: Buffer, at: number, value: number): number {
  if (value < 0) return writeHalves(out, at, value >>> 0, Math.floor(value / twoTo32) >>> 0);
  let rest = value;
  while (rest > 0x7fffffff) {
    out[at++] = (rest & 0x7f) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  while (rest >= 0x80) {
    out[at++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  out[at++] = rest;
  return at;
}

function writeHalves(out: Buffer, at: number, low: number, high: number): number {
  while (high !== 0) {
    out[at++] = (low & 0x7f) | 0x80;
    low = ((low >>> 7) | (high << 25)) >>> 0;
    high >>>= 7;
  }
  return writeVarint(out, at, low);
}

export function numberFieldSize(tagSize: number, value: number): number {
  return value === 0 ? 0 : tagSize + varintSize(value);
}

export function writeNumberField(out: Buffer, at: number, tag: number, value: number): number {
  return value === 0 ? at : writeVarint(out, writeVarint(out, at, tag), value);
}

/** For int64 and, since their bits are the same, uint64. */
export function int64Size(value: bigint): number {
  halves.setBigInt64(0, value, true);
  const high = halves.getUint32(4, true);
  if (high >= 2 ** 31) return 10;
  if (high >= 2 ** 24) return 9;
  return varintSize(high * twoTo32 + halves.getUint32(0, true));
}

export function writeInt64(out: Buffer, at: number, value: bigint): number {
  halves.setBigInt64(0, value, true);
  return writeHalves(out, at, halves.getUint32(0, true), halves.getUint32(4, true));
}

export function bigIntFieldSize(tagSize: number, value: bigint): number {
  return value === 0n ? 0 : tagSize + int64Size(value);
}

export function writeBigIntField(out: Buffer, at: number, tag: number, value: bigint): number {
  return value === 0n ? at : writeInt64(out, writeVarint(out, at, tag), value);
}

export function boolFieldSize(tagSize: number, value: boolean): number {
  return value ? tagSize + 1 : 0;
}

export function writeBoolField(out: Buffer, at: number, tag: number, value: boolean): number {
  return value ? writeVarint(out, writeVarint(out, at, tag), 1) : at;
}

/** `text` has one char per byte. */
export function latin1FieldSize(tagSize: number, text: string): number {
  return text.length === 0 ? 0 : delimitedSize(tagSize, text.length);
}

export function writeLatin1Field(out: Buffer, at: number, tag: number, text: string): number {
  return text.length === 0 ? at : writeLatin1(out, writeDelimiter(out, at, tag, text.length), text);
}

/** `text` is a Unicode string; a lone surrogate in it becomes the replacement character. */
export function utf8FieldSize(tagSize: number, text: string): number {
  return text.length === 0 ? 0 : delimitedSize(tagSize, Buffer.byteLength(text, 'utf8'));
}

export function writeUtf8Field(out: Buffer, at: number, tag: number, text: string): number {
  if (text.length === 0) return at;
  const start = writeDelimiter(out, at, tag, Buffer.byteLength(text, 'utf8'));
  return start + out.write(text, start, 'utf8');
}

/** The size of a field whose content, a message perhaps, has `size` bytes; never left out. */
export function delimitedSize(tagSize: number, size: number): number {
  return tagSize + varintSize(size) + size;
}

/** Writes a field's tag and the length of the content that follows. */
export function writeDelimiter(out: Buffer, at: number, tag: number, size: number): number {
  return writeVarint(out, writeVarint(out, at, tag), size);
}
