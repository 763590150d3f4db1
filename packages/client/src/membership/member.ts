import type { Entry } from '../backend/lease-backend.ts';
import type { Weighted } from './rendezvous.ts';

/** What a member publishes about itself, such as its address. It must be serializable as JSON. */
export type MemberMetadata = Readonly<Record<string, unknown>>;

export interface Member extends Weighted {
  /** Unique in the group. */
  readonly id: string;
  /** The holder of the manager through which it joined. */
  readonly holder: string;
  readonly metadata: MemberMetadata;
  readonly weight: number;
}

/** The data of a member's entry. */
export function memberData(member: Omit<Member, 'holder'>): string {
  return JSON.stringify({ id: member.id, weight: member.weight, metadata: member.metadata });
}

/**
 * The members in a queue, in the order of their ids. Of two entries with one id the newer counts: the other is left
 * over from before the member rejoined. An entry whose data can't be parsed is skipped.
 */
export function membersOf(entries: readonly Entry[]): readonly Member[] {
  const byId = new Map<string, Member>();
  for (const entry of entries) {
    const member = memberOf(entry);
    if (member !== undefined) byId.set(member.id, member);
  }
  return [...byId.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1));
}

function memberOf({ data, holder }: Entry): Member | undefined {
  try {
    const { id, weight, metadata } = JSON.parse(data) as Partial<Member>;
    if (typeof id !== 'string' || typeof weight !== 'number' || typeof metadata !== 'object') return undefined;
    return { id, holder, weight, metadata };
  } catch {
    return undefined;
  }
}
