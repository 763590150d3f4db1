import type { Entry } from '../backend/lease-backend.ts';
import type { Weighted } from './rendezvous.ts';

/** What a member tells of itself, such as its address. It must survive JSON as it is. */
export type MemberMetadata = Readonly<Record<string, unknown>>;

export interface Member extends Weighted {
  /** Unique in the group. */
  readonly id: string;
  /** The holder of the manager through which it joined. */
  readonly holder: string;
  readonly metadata: MemberMetadata;
  readonly weight: number;
}

/** What a member's entry carries. */
export function memberData(member: Omit<Member, 'holder'>): string {
  return JSON.stringify({ id: member.id, weight: member.weight, metadata: member.metadata });
}

/**
 * The members that stand in a line, in the order of their ids. Of two entries with one id the younger counts: the
 * other is what a member that came back has left behind. What nobody can read is no member.
 */
export function membersOf(line: readonly Entry[]): readonly Member[] {
  const byId = new Map<string, Member>();
  for (const entry of line) {
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
