import { memberData } from './member.ts';
import type { Member } from './member.ts';

/** The members of a group at one moment, in the order of their ids. It never changes; later ones are new objects. */
export interface Snapshot {
  readonly group: string;
  readonly members: readonly Member[];
}

/** What has become different since the snapshot before, each in the order of ids. */
export interface Changes {
  readonly snapshot: Snapshot;
  readonly added: readonly Member[];
  readonly removed: readonly Member[];
  /** Members that were there before, with another weight or other metadata: as they are now. */
  readonly changed: readonly Member[];
}

/** From `before` to `after`. Without one before there are no changes: the first snapshot stands for itself. */
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
