/** What the assignment of resources needs to know of a member. */
export interface Weighted {
  readonly id: string;
  /** A member of weight 2 gets twice as many resources as one of weight 1, and one of weight 0 gets none. */
  readonly weight: number;
}

/**
 * The member that owns a resource, by weighted rendezvous hashing: each member gets a score for the resource, the same
 * on every machine, and the highest score wins. When a member joins, resources move only to it; when one leaves, only
 * its resources move; when a weight changes, resources move only to or from that member. Undefined if no member has a
 * weight.
 */
export function rendezvousOwner<T extends Weighted>(members: readonly T[], resource: string): T | undefined {
  let owner: T | undefined;
  let highest = -Infinity;
  for (const member of members) {
    if (!(member.weight > 0)) continue;
    const drawn = Math.log(hashFraction(member.id, resource)) / member.weight;
    // Equal scores are very unlikely, but all machines must still agree on one owner.
    if (drawn > highest || (drawn === highest && member.id < owner!.id)) {
      highest = drawn;
      owner = member;
    }
  }
  return owner;
}

/** Uniform between 0 and 1, both exclusive: 53 bits mixed from both texts. Not safe against chosen names. */
function hashFraction(member: string, resource: string): number {
  let high = 0x9e3779b9;
  let low = 0x85ebca6b;
  const take = (unit: number): void => {
    high = Math.imul(high ^ unit, 0x2c1b3c6d);
    low = Math.imul(low ^ unit ^ (high >>> 15), 0x297a2d39);
    high ^= low >>> 13;
  };
  for (let at = 0; at < member.length; at++) take(member.charCodeAt(at));
  // Separates the texts, so that different pairs do not collide. No UTF-16 unit has this value.
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
