import type { Random } from './random.ts';

/** A new id of a cluster or a member: 64 bits, never 0, which means none. */
export function randomId(random: Random): bigint {
  return random.bytes(8).readBigUInt64BE() | 1n;
}
