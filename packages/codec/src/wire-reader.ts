import { DecodeError } from './decode-error.ts';
import { readLatin1 } from './latin1.ts';

const wireVarint = 0;
const wireFixed64 = 1;
const wireBytes = 2;
const wireGroupStart = 3;
const wireGroupEnd = 4;
const wireFixed32 = 5;

/** A tag has 32 bits. */
const maxTagBytes = 5;

/** Groups nest no deeper than this: as deep as protobuf's libraries allow for messages. */
const maxGroupDepth = 100;
const groupsTooDeep = 'proto: exceeded max recursion depth';

const twoTo32 = 0x1_0000_0000;
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** Two halves in, one bigint out: bigint arithmetic would create several. */
const halves = new DataView(new ArrayBuffer(8));

/**
 * Reads protobuf's wire format from a buffer, forward, and never past `end`. Any violation of the format, and any read
 * beyond the end, throws a DecodeError.
 *
 * As strict as etcd's own decoder: a known field in a wrong wire type is refused, and a field ends inside its message.
 * It is stricter in one way, as newer decoders are: a tag has 32 bits and at most five bytes, and groups are closed by
 * number.
 */
export class WireReader {
  readonly bytes: Buffer;
  at: number;
  /** The end of the current message. */
  end: number;
  /** The halves of the last varint, as unsigned 32-bit numbers. */
  private low = 0;
  private high = 0;

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  /** Field number x 8 + wire type. Call it only while `at < end`. */
  tag(): number {
    const byte = this.bytes[this.at]!;
    if (byte < 0x80) {
      this.at++;
      return byte;
    }
    const start = this.at;
    this.varint();
    if (this.high !== 0 || this.at - start > maxTagBytes) throw new DecodeError('Overflow');
    return this.low;
  }

  /** An int64 as a number, clamped to the safe integers. */
  int64(): number {
    const byte = this.at < this.end ? this.bytes[this.at]! : 0x80;
    if (byte < 0x80) {
      this.at++;
      return byte;
    }
    this.varint();
    const value = (this.high | 0) * twoTo32 + this.low;
    return Math.min(Math.max(value, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  }

  /** An int64 in full. */
  bigInt64(): bigint {
    this.varint();
    if (this.low === 0 && this.high === 0) return 0n;
    halves.setUint32(0, this.low, true);
    halves.setUint32(4, this.high, true);
    return halves.getBigInt64(0, true);
  }

  bool(): boolean {
    this.varint();
    return this.low !== 0 || this.high !== 0;
  }

  /** An enum's number. proto3's enums are open: a number without a name is kept. */
  enumNumber(): number {
    this.varint();
    return this.low | 0;
  }

  latin1(): string {
    const end = this.fieldEnd();
    const text = readLatin1(this.bytes, this.at, end);
    this.at = end;
    return text;
  }

  utf8(): string {
    const end = this.fieldEnd();
    const start = this.at;
    this.at = end;
    try {
      return strictUtf8.decode(this.bytes.subarray(start, end));
    } catch (cause) {
      throw new DecodeError('InvalidText', { cause });
    }
  }

  /** Enters the message in this field: `end` becomes its end. Returns the argument for `leave`. */
  enter(): number {
    const outer = this.end;
    this.end = this.fieldEnd();
    return outer;
  }

  leave(outer: number): void {
    this.at = this.end;
    this.end = outer;
  }

  /** Skips an unknown field. `known` are the numbers of the message's fields. */
  skipUnknown(tag: number, known: readonly number[]): void {
    if (known.includes(tag >>> 3)) throw new DecodeError('WrongWireType');
    this.skip(tag);
  }

  /** Skips a field, or a group with its contents. */
  skip(tag: number): void {
    if ((tag & 7) === wireGroupStart) this.skipGroup(tag);
    else this.skipField(tag);
  }

  private skipField(tag: number): void {
    if (tag >>> 3 === 0) throw new DecodeError('IllegalTag');
    switch (tag & 7) {
      case wireVarint:
        this.varint();
        return;
      case wireFixed64:
        this.skipBytes(8);
        return;
      case wireBytes:
        this.at = this.fieldEnd();
        return;
      case wireFixed32:
        this.skipBytes(4);
        return;
      default:
        throw new DecodeError('IllegalTag', { text: `proto: illegal wireType ${tag & 7}` });
    }
  }

  /**
   * Reads to the end of the group whose start tag was read. A loop: client bytes must not determine the stack's depth.
   */
  private skipGroup(start: number): void {
    if (start >>> 3 === 0) throw new DecodeError('IllegalTag');
    const open = [start >>> 3];
    while (open.length > 0) {
      if (this.at >= this.end) throw new DecodeError('Truncated');
      const tag = this.tag();
      const wireType = tag & 7;
      if (wireType === wireGroupStart && tag >>> 3 !== 0) {
        if (open.length === maxGroupDepth) throw new DecodeError('IllegalTag', { text: groupsTooDeep });
        open.push(tag >>> 3);
      } else if (wireType === wireGroupEnd) {
        if (open.pop() !== tag >>> 3) throw new DecodeError('IllegalTag', { text: 'proto: unexpected end of group' });
      } else {
        this.skipField(tag);
      }
    }
  }

  private skipBytes(count: number): void {
    if (count > this.end - this.at) throw new DecodeError('Truncated');
    this.at += count;
  }

  /** Reads a length and returns the position after that many bytes. */
  private fieldEnd(): number {
    const byte = this.at < this.end ? this.bytes[this.at]! : 0x80;
    let length = byte;
    if (byte < 0x80) {
      this.at++;
    } else {
      this.varint();
      if (this.high > 0x7fff_ffff) throw new DecodeError('NegativeLength');
      length = this.high * twoTo32 + this.low;
    }
    if (length > this.end - this.at) throw new DecodeError('Truncated');
    return this.at + length;
  }

  /** Reads a varint into `low` and `high`. Bits past the 64th are dropped, bytes past the tenth refused. */
  private varint(): void {
    const bytes = this.bytes;
    const end = this.end;
    let at = this.at;
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (at >= end) throw new DecodeError('Truncated');
      const byte = bytes[at++]!;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high = bits >>> 4;
      } else high |= bits << (shift - 32);
      if (byte < 0x80) {
        this.at = at;
        this.low = low >>> 0;
        this.high = high >>> 0;
        return;
      }
    }
    throw new DecodeError('Overflow');
  }
}
