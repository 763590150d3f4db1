import type { DescMessage } from '@bufbuild/protobuf';
import { ByteBuffer } from './byte-buffer.ts';
import { type FieldPlan, type MessagePlan, messagePlan } from './message-plan.ts';

const wireVarint = 0;
const wireFixed64 = 1;
const wireBytes = 2;
const wireFixed32 = 5;

/** A nested message or a packed list. */
interface Frame {
  readonly plan: MessagePlan | undefined;
  readonly packed: FieldPlan | undefined;
  /** The position in the reply at which it ends. */
  readonly end: number;
  isEmpty: boolean;
  /** The repeated field whose list is open. */
  list: FieldPlan | undefined;
}

/** A field of bytes that has begun. */
interface OpenBytes {
  /** Unknown fields are not part of the JSON. */
  readonly isSkipped: boolean;
  left: number;
  /** Up to two bytes, which base64 encodes together with the next. */
  rest: Buffer;
}

/**
 * Converts a protobuf message to JSON piece by piece, so that a reply of any size is held in neither form, with the
 * names of the .proto files and without empty fields, as etcd sets Go's protojson. The server wrote the message itself,
 * so a malformed one is a bug and throws.
 */
export class ReplyEncoder {
  #frames: Frame[];
  /** The beginning of a field that is not complete yet. */
  readonly #rest = new ByteBuffer();
  /** Of the message: what has been read. */
  #position = 0;
  #bytes: OpenBytes | undefined;
  #out: string[] = [];

  /** `size`: of the whole message. */
  constructor(descriptor: DescMessage, size: number) {
    this.#frames = [frame(messagePlan(descriptor), undefined, size)];
    this.#out.push('{');
    this.#closeEnded();
  }

  /** The whole message at once. */
  static encode(descriptor: DescMessage, message: Buffer): string {
    return new ReplyEncoder(descriptor, message.length).push(message);
  }

  /** The JSON of the next bytes; with the last of them it is complete. */
  push(piece: Buffer): string {
    let input = piece;
    if (this.#rest.length > 0) {
      this.#rest.append(piece);
      input = Buffer.from(this.#rest.view());
      this.#rest.reset();
    }
    let at = 0;
    while (at < input.length) {
      const read = this.#bytes === undefined ? this.#readField(input, at) : this.#readBytes(input, at);
      if (read === 0) break;
      at += read;
      this.#position += read;
      if (this.#bytes === undefined) this.#closeEnded();
    }
    if (at < input.length) this.#rest.append(input, at);
    const text = this.#out.join('');
    this.#out = [];
    return text;
  }

  /** Returns the number of bytes read: 0 when more are needed. */
  #readField(input: Buffer, at: number): number {
    const top = this.#top;
    if (top.packed !== undefined) {
      const value = readVarint(input, at);
      if (value === undefined) return 0;
      this.#element(top, scalarText(top.packed, value.bits));
      return value.size;
    }
    const tag = readVarint(input, at);
    if (tag === undefined) return 0;
    const number = Number(tag.bits >> 3n);
    const field = top.plan?.byNumber.get(number);
    const wireType = Number(tag.bits & 7n);
    const valueAt = at + tag.size;
    if (wireType === wireFixed64 || wireType === wireFixed32) {
      const size = wireType === wireFixed64 ? 8 : 4;
      return input.length - valueAt < size ? 0 : tag.size + size;
    }
    const value = readVarint(input, valueAt);
    if (value === undefined) return 0;
    const headBytes = tag.size + value.size;
    if (wireType === wireVarint) {
      if (field !== undefined) this.#varintField(top, field, value.bits);
      return headBytes;
    }
    if (wireType !== wireBytes) throw new Error(`a reply has a field of wire type ${wireType}`);
    return this.#lengthField(top, field, { input, bodyAt: at + headBytes, headBytes, size: Number(value.bits) });
  }

  #varintField(top: Frame, field: FieldPlan, bits: bigint): void {
    if (bits === 0n && !field.isList && field.oneof === undefined) return;
    this.#name(top, field);
    this.#out.push(scalarText(field, bits));
  }

  #lengthField(
    top: Frame,
    field: FieldPlan | undefined,
    { input, bodyAt, headBytes, size }: { input: Buffer; bodyAt: number; headBytes: number; size: number },
  ): number {
    const end = this.#position + headBytes + size;
    if (field === undefined) {
      if (size > 0) this.#bytes = { isSkipped: true, left: size, rest: Buffer.alloc(0) };
      return headBytes;
    }
    switch (field.kind) {
      case 'message':
        this.#name(top, field);
        this.#out.push('{');
        this.#frames.push(frame(field.message, undefined, end));
        return headBytes;
      case 'string':
        if (input.length - bodyAt < size) return 0;
        if (size === 0 && !field.isList && field.oneof === undefined) return headBytes;
        this.#name(top, field);
        this.#out.push(JSON.stringify(input.toString('utf8', bodyAt, bodyAt + size)));
        return headBytes + size;
      case 'bytes':
        if (size === 0 && !field.isList && field.oneof === undefined) return headBytes;
        this.#name(top, field);
        this.#out.push(size === 0 ? '""' : '"');
        if (size > 0) this.#bytes = { isSkipped: false, left: size, rest: Buffer.alloc(0) };
        return headBytes;
      default:
        this.#name(top, { ...field, isList: false });
        this.#out.push('[');
        this.#frames.push(frame(undefined, field, end));
        return headBytes;
    }
  }

  #readBytes(input: Buffer, at: number): number {
    const open = this.#bytes as OpenBytes;
    const read = Math.min(open.left, input.length - at);
    open.left -= read;
    if (open.isSkipped) {
      if (open.left === 0) this.#bytes = undefined;
      return read;
    }
    let part = input.subarray(at, at + read);
    if (open.rest.length > 0) part = Buffer.concat([open.rest, part]);
    const whole = open.left === 0 ? part.length : part.length - (part.length % 3);
    this.#out.push(part.toString('base64', 0, whole));
    open.rest = Buffer.from(part.subarray(whole));
    if (open.left === 0) {
      this.#out.push('"');
      this.#bytes = undefined;
    }
    return read;
  }

  get #top(): Frame {
    const top = this.#frames.at(-1);
    if (top === undefined) throw new Error('a reply is longer than its size');
    return top;
  }

  #name(top: Frame, field: FieldPlan): void {
    if (top.list !== undefined && top.list === field) {
      this.#out.push(',');
      return;
    }
    if (top.list !== undefined) this.#out.push(']');
    if (!top.isEmpty) this.#out.push(',');
    top.isEmpty = false;
    top.list = field.isList ? field : undefined;
    this.#out.push(`"${field.name}":`);
    if (field.isList) this.#out.push('[');
  }

  #element(top: Frame, text: string): void {
    if (!top.isEmpty) this.#out.push(',');
    top.isEmpty = false;
    this.#out.push(text);
  }

  #closeEnded(): void {
    for (let top = this.#frames.at(-1); top !== undefined && this.#position >= top.end; top = this.#frames.at(-1)) {
      if (this.#position > top.end) throw new Error('a field of a reply is longer than its message');
      if (top.list !== undefined) this.#out.push(']');
      if (top.packed !== undefined) this.#out.push(']');
      else if (top.plan !== undefined) this.#out.push('}');
      this.#frames.pop();
    }
  }
}

function frame(plan: MessagePlan | undefined, packed: FieldPlan | undefined, end: number): Frame {
  return { plan, packed, end, isEmpty: true, list: undefined };
}

function scalarText(field: FieldPlan, bits: bigint): string {
  switch (field.kind) {
    case 'bool':
      return bits === 0n ? 'false' : 'true';
    case 'uint64':
      return `"${bits}"`;
    case 'int64':
      return `"${BigInt.asIntN(64, bits)}"`;
    case 'sint64':
      return `"${(bits >> 1n) ^ -(bits & 1n)}"`;
    case 'uint32':
      return `${BigInt.asUintN(32, bits)}`;
    case 'int32':
      return `${BigInt.asIntN(32, bits)}`;
    case 'enum': {
      const number = Number(BigInt.asIntN(32, bits));
      const name = field.enumNames.get(number);
      return name === undefined ? String(number) : `"${name}"`;
    }
    default:
      throw new Error(`the field ${field.name} of a reply is a number and should be ${field.kind}`);
  }
}

function readVarint(input: Buffer, at: number): { readonly bits: bigint; readonly size: number } | undefined {
  let low = 0;
  let factor = 1;
  // Up to 49 bits are exact in a double, which is faster than bigint.
  for (let i = at; i < input.length && i < at + 7; i++) {
    const byte = input[i] as number;
    low += (byte & 0x7f) * factor;
    if (byte < 0x80) return { bits: BigInt(low), size: i - at + 1 };
    factor *= 0x80;
  }
  let bits = BigInt(low);
  let shift = 49n;
  for (let i = at + 7; i < input.length && i < at + 10; i++) {
    const byte = input[i] as number;
    bits |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { bits: BigInt.asUintN(64, bits), size: i - at + 1 };
    shift += 7n;
  }
  if (input.length >= at + 10) throw new Error('a reply has a number of more than ten bytes');
  return undefined;
}
