/** A member as far as sharing things out goes. */
export interface Weighted {
  readonly id: string;
  /** A member of weight 2 gets twice as much as one of weight 1, and one of 0 gets nothing. */
  readonly weight: number;
}

/**
 * Which member a resource belongs to, by weighted rendezvous hashing: each member draws a number for the resource,
 * the same one on every machine, and the highest wins. So when a member comes, all that moves moves to it, when one
 * goes, only what it had moves, and when a weight changes, things move to or from that member only. Undefined if no
 * member has a weight.
 */
export function rendezvousOwner<T extends Weighted>(members: readonly T[], resource: string): T | undefined {
  let owner: T | undefined;
  let highest = -Infinity;
  for (const member of members) {
    if (!(member.weight > 0)) continue;
    const drawn = Math.log(hashFraction(member.id, resource)) / member.weight;
    // Numbers as good as never meet, but when they do everybody must still agree.
    if (drawn > highest || (drawn === highest && member.id < owner!.id)) {
      highest = drawn;
      owner = member;
    }
  }
  return owner;
}

/** Evenly from above 0 to below 1: 53 bits mixed from both texts. Not to be used against somebody who picks names. */
function hashFraction(member: string, resource: string): number {
  let high = 0x9e3779b9;
  let low = 0x85ebca6b;
  const take = (unit: number): void => {
    high = Math.imul(high ^ unit, 0x2c1b3c6d);
    low = Math.imul(low ^ unit ^ (high >>> 15), 0x297a2d39);
    high ^= low >>> 13;
  };
  for (let at = 0; at < member.length; at++) take(member.charCodeAt(at));
  // Ends the first text, so that no two pairs run together; no character has this number.
  take(0x10000 + member.length);
  for (let at = 0; at < resource.length; at++) take(resource.charCodeAt(at));
  take(resource.length);
  high = mix(high ^ (low >>> 7));
  low = mix(low + high);
  return ((high >>> 11) * 2 ** 32 + (low >>> 0) + 0.5) / 2 ** 53;
}

/** Spreads every bit over all 32. */
function mix(bits: number): number {
  let mixed = bits;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
