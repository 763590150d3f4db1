/** Revisions are below 2^53: what a client asks beyond that is as far out of reach as 2^53 itself. */
export function toSafeNumber(value: bigint): number {
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(value);
}
