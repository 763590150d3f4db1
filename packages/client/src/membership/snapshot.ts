import { memberData } from './member.ts';
import type { Member } from './member.ts';

/** The members of a group at one moment, in the order of their ids. Immutable: a later snapshot is a new object. */
export interface Snapshot {
  readonly group: string;
  readonly members: readonly Member[];
}

/** The differences to the previous snapshot, each list in the order of ids. */
export interface Changes {
  readonly snapshot: Snapshot;
  readonly added: readonly Member[];
  readonly removed: readonly Member[];
  /** Members that stayed but have another weight, other metadata or another holder, as they are now. */
  readonly changed: readonly Member[];
}

/** The changes from `before` to `after`. None for the first snapshot. */
export function changesBetween(before: Snapshot | undefined, after: Snapshot): Changes {
  if (before === undefined) return { snapshot: after, added: [], removed: [], changed: [] };
  const old = new Map(before.members.map((member) => [member.id, member]));
  const now = new Set(after.members.map(({ id }) => id));
  return {
    snapshot: after,
    added: after.members.filter(({ id }) => !old.has(id)),
    removed: before.members.filter(({ id }) => !now.has(id)),
    changed: after.members.filter((member) => isOther(old.get(member.id), member)),
  };
}

export function isSameSnapshot(one: Snapshot | undefined, other: Snapshot): boolean {
  if (one === undefined || one.members.length !== other.members.length) return false;
  return other.members.every((member, at) => one.members[at]!.id === member.id && !isOther(one.members[at], member));
}

function isOther(before: Member | undefined, member: Member): boolean {
  if (before === undefined) return false;
  return before.holder !== member.holder || memberData(before) !== memberData(member);
}
