/** One field of a message on the wire: a number for varints, bytes for everything with a length. */
export interface Field {
  readonly number: number;
  readonly varint: bigint;
  readonly bytes: Buffer;
}

const noBytes = Buffer.alloc(0);

/** A small protobuf writer and reader: the benchmarks share no code with the measured server. */
export class MessageWriter {
  readonly #parts: Buffer[] = [];

  varint(field: number, value: number | bigint): this {
    if (BigInt(value) !== 0n) this.#parts.push(varintBytes(field << 3), varintBytes(value));
    return this;
  }

  bytes(field: number, value: Uint8Array | string): this {
    const content = typeof value === 'string' ? Buffer.from(value, 'latin1') : Buffer.from(value);
    this.#parts.push(varintBytes((field << 3) | 2), varintBytes(content.length), content);
    return this;
  }

  finish(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

export function* readFields(message: Buffer): Generator<Field> {
  let at = 0;
  const readVarint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at];
      if (byte === undefined) throw new Error('a reply ends inside a number');
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(readVarint());
    const number = tag >> 3;
    if ((tag & 7) === 0) {
      yield { number, varint: readVarint(), bytes: noBytes };
    } else if ((tag & 7) === 2) {
      const length = Number(readVarint());
      if (at + length > message.length) throw new Error('a reply ends inside a field');
      yield { number, varint: 0n, bytes: message.subarray(at, at + length) };
      at += length;
    } else {
      throw new Error(`a reply has a field of wire type ${tag & 7}`);
    }
  }
}

export function varintOf(message: Buffer, number: number): number {
  for (const field of readFields(message)) if (field.number === number) return Number(field.varint);
  return 0;
}

export function bytesOf(message: Buffer, number: number): Buffer {
  for (const field of readFields(message)) if (field.number === number) return field.bytes;
  return noBytes;
}

function varintBytes(value: number | bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}
