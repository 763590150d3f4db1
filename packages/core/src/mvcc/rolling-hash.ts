import type { KeyValue } from './kv-types.ts';

/**
 * 32-bit running hashes, similar to MurmurHash3: fast in plain JavaScript, and the same on every server. They detect
 * servers that disagree and damaged files. They are not cryptographic: a collision can be forged.
 */
function mixWord(hash: number, word: number): number {
  let k = Math.imul(word, 0xcc9e2d51);
  k = (k << 15) | (k >>> 17);
  let h = hash ^ Math.imul(k, 0x1b873593);
  h = (h << 13) | (h >>> 19);
  return (Math.imul(h, 5) + 0xe6546b64) | 0;
}

/** For integers up to 2^53. */
function mixInteger(hash: number, value: number): number {
  const low = mixWord(hash, value | 0);
  return mixWord(low, Math.floor(value / 0x100000000) | 0);
}

/** For int64. */
function mixBigint(hash: number, value: bigint): number {
  if (value === 0n) return mixWord(mixWord(hash, 0), 0);
  const low = mixWord(hash, Number(BigInt.asIntN(32, value)));
  return mixWord(low, Number(BigInt.asIntN(32, value >> 32n)));
}

/** For latin1 strings. The length is hashed as well, so that two consecutive strings cannot be split differently. */
function mixString(hash: number, text: string): number {
  const length = text.length;
  let h = mixWord(hash, length);
  const whole = length & ~3;
  for (let i = 0; i < whole; i += 4) {
    const word =
      text.charCodeAt(i) |
      (text.charCodeAt(i + 1) << 8) |
      (text.charCodeAt(i + 2) << 16) |
      (text.charCodeAt(i + 3) << 24);
    h = mixWord(h, word);
  }
  let rest = 0;
  for (let i = whole; i < length; i++) rest = (rest << 8) | text.charCodeAt(i);
  return whole === length ? h : mixWord(h, rest);
}

export function hashBytes(hash: number, bytes: Uint8Array, start: number, end: number): number {
  let h = mixWord(hash, end - start);
  let at = start;
  for (; at + 4 <= end; at += 4) {
    const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    h = mixWord(h, word);
  }
  let rest = 0;
  for (let i = at; i < end; i++) rest = (rest << 8) | bytes[i]!;
  return at === end ? h : mixWord(h, rest);
}

/** One change of one key; a delete has version 0. */
export function hashKeyValue(hash: number, kv: KeyValue): number {
  let h = mixString(hash, kv.key);
  h = mixString(h, kv.value);
  h = mixInteger(h, kv.createRevision);
  h = mixInteger(h, kv.modRevision);
  h = mixInteger(h, kv.version);
  return mixBigint(h, kv.lease);
}
