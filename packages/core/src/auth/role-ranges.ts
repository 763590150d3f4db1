import type { Role } from './auth-types.ts';
import { PermittedRanges } from './permitted-ranges.ts';

/** Limit on the intervals that are remembered, about 50 MB; the roles that were derived first go. */
const maxIntervals = 500_000;

interface Known {
  readonly names: readonly string[];
  readonly ranges: PermittedRanges;
}

/**
 * What some roles allow together, derived once for all users with the same ones: of thousands of users with a role
 * of many permissions, each would take memory for all of them.
 */
export class RoleRanges {
  readonly #roles: ReadonlyMap<string, Role>;
  readonly #known = new Map<string, Known>();
  #intervals = 0;

  constructor(roles: ReadonlyMap<string, Role>) {
    this.#roles = roles;
  }

  /** With these roles. What was derived from roles that stay the same is kept. */
  after(roles: ReadonlyMap<string, Role>): RoleRanges {
    const next = new RoleRanges(roles);
    for (const [key, known] of this.#known) {
      if (known.names.every((name) => roles.get(name) === this.#roles.get(name))) next.#remember(key, known);
    }
    return next;
  }

  of(names: readonly string[]): PermittedRanges {
    // Nearly all users have one role, for which the text of a list would take longer than the rest.
    const key = names.length === 1 ? `.${names[0]}` : JSON.stringify(names);
    const known = this.#known.get(key);
    if (known !== undefined) return known.ranges;
    const [only] = names;
    const ranges =
      names.length === 1 && only !== undefined
        ? PermittedRanges.ofRole(this.#roles.get(only)?.permissions ?? [])
        : PermittedRanges.ofAll(names.map((name) => this.of([name])));
    this.#remember(key, { names, ranges });
    return ranges;
  }

  #remember(key: string, known: Known): void {
    this.#intervals += known.ranges.maxSize;
    for (const [first, { ranges }] of this.#known) {
      if (this.#intervals <= maxIntervals) break;
      this.#known.delete(first);
      this.#intervals -= ranges.maxSize;
    }
    this.#known.set(key, known);
  }
}
