/** Protobuf's wire types. */
export const wireType = { varint: 0, fixed64: 1, bytes: 2, startGroup: 3, endGroup: 4, fixed32: 5 } as const;

/** Protobuf by hand, for messages that no encoder writes. */
function varint(value: bigint): Uint8Array {
  const out: number[] = [];
  let rest = BigInt.asUintN(64, value);
  while (rest > 0x7fn) {
    out.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  out.push(Number(rest));
  return Uint8Array.from(out);
}

export function tag(fieldNumber: number, type: number): Uint8Array {
  return varint((BigInt(fieldNumber) << 3n) | BigInt(type));
}

export function varintField(fieldNumber: number, value: bigint): Uint8Array {
  return Buffer.concat([tag(fieldNumber, wireType.varint), varint(value)]);
}

export function bytesField(fieldNumber: number, value: Uint8Array): Uint8Array {
  return Buffer.concat([tag(fieldNumber, wireType.bytes), varint(BigInt(value.length)), value]);
}
