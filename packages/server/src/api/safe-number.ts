/** Revisions are below 2^53: a request for a higher one is as unreachable as 2^53 itself. */
export function toSafeNumber(value: bigint): number {
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(value);
}
