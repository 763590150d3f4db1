import { compareStrings } from '../mvcc/btree.ts';
import type { Role } from './auth-types.ts';
import { PermittedRanges } from './permitted-ranges.ts';

/** Limit on the intervals that are remembered, about 50 MB; the roles that were derived first go. */
const maxIntervals = 500_000;

/**
 * What some roles allow together, derived once for all users with the same ones: of thousands of users with a role
 * of many permissions, each would take memory for all of them.
 */
export class RoleRanges {
  readonly #roles: ReadonlyMap<string, Role>;
  readonly #known = new Map<string, PermittedRanges>();
  #intervals = 0;

  constructor(roles: ReadonlyMap<string, Role>) {
    this.#roles = roles;
  }

  of(names: readonly string[]): PermittedRanges {
    // Nearly all users have one role, for which the text of a list would take longer than the rest.
    const key = names.length === 1 ? `.${names[0]}` : JSON.stringify(names);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const permissions = names.flatMap((name) => this.#roles.get(name)?.permissions ?? []);
    // Sorted for each role. To insert those of one role between those of another takes long.
    if (names.length > 1) permissions.sort((a, b) => compareStrings(a.key, b.key));
    const ranges = new PermittedRanges();
    for (const permission of permissions) ranges.add(permission);
    this.#intervals += ranges.size;
    this.#makeRoom();
    this.#known.set(key, ranges);
    return ranges;
  }

  #makeRoom(): void {
    for (const [key, { size }] of this.#known) {
      if (this.#intervals <= maxIntervals) return;
      this.#known.delete(key);
      this.#intervals -= size;
    }
  }
}
