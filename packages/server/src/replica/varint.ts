/** How many bytes `value` (a whole number from 0 to 2^53 - 1) takes as a varint. */
export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length += 1;
  return length;
}

/** Writes `value` at `at`, and returns the place behind it. */
export function encodeVarint(value: number, bytes: Uint8Array, at: number): number {
  let rest = value;
  let place = at;
  while (rest >= 0x80) {
    bytes[place++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  bytes[place++] = rest;
  return place;
}

/** Reads a varint at the cursor and moves it. Throws if the bytes end first or the number is above 2^53 - 1. */
export function decodeVarint(bytes: Uint8Array, cursor: { at: number }): number {
  let value = 0;
  let factor = 1;
  for (;;) {
    const byte = bytes[cursor.at++];
    if (byte === undefined) throw new Error('an entry of the log ends within a number');
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) break;
    factor *= 0x80;
  }
  if (!Number.isSafeInteger(value)) throw new Error('an entry of the log holds a number above 2^53 - 1');
  return value;
}
