import { type Role, rootName, type User } from './auth-types.ts';
import type { PermittedRanges } from './permitted-ranges.ts';
import { RoleRanges } from './role-ranges.ts';

export interface AuthData {
  readonly enabled: boolean;
  /** Counts the changes, from 1. */
  readonly revision: number;
  /** The revision at which authentication was last enabled; older tokens are invalid. 0 while it never was. */
  readonly enabledAt: number;
  readonly users: ReadonlyMap<string, User>;
  readonly roles: ReadonlyMap<string, Role>;
}

/** The order of the names' bytes in UTF-8, which is that of their code points, and not of their UTF-16 units. */
export function byBytes(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return (a.codePointAt(at) ?? -1) - (b.codePointAt(at) ?? -1);
}

/** An estimate of the memory of a user, a role, a granted role and a permission, besides their texts. */
const overheadBytes = 64;

/**
 * Users, roles and permissions. A change makes a new object, so that a reader keeps what it has, and what is derived
 * from the data is derived once.
 */
export class AuthState implements AuthData {
  static readonly initial = new AuthState({
    enabled: false,
    revision: 1,
    enabledAt: 0,
    users: new Map(),
    roles: new Map(),
  });

  readonly enabled: boolean;
  readonly revision: number;
  readonly enabledAt: number;
  readonly users: ReadonlyMap<string, User>;
  readonly roles: ReadonlyMap<string, Role>;
  readonly #ranges: RoleRanges;
  #bytes: number | undefined;

  /** `ranges`: of the same roles. */
  constructor({ enabled, revision, enabledAt, users, roles }: AuthData, ranges = new RoleRanges(roles)) {
    this.enabled = enabled;
    this.revision = revision;
    this.enabledAt = enabledAt;
    this.users = users;
    this.roles = roles;
    this.#ranges = ranges;
  }

  /** The state with these changes, at the next revision. */
  with(changed: Partial<AuthData>): AuthState {
    const ranges = changed.roles === undefined ? this.#ranges : this.#ranges.after(changed.roles);
    return new AuthState({ ...this.#data, ...changed, revision: this.revision + 1 }, ranges);
  }

  /** Enabled, at the same revision. */
  enable(): AuthState {
    return new AuthState({ ...this.#data, enabled: true, enabledAt: this.revision }, this.#ranges);
  }

  /** Without the hashes of passwords. */
  withoutPasswords(): AuthState {
    const users = new Map(Array.from(this.users, ([name, user]) => [name, { ...user, passwordHash: '' }]));
    return new AuthState({ ...this.#data, users });
  }

  /** In the order of their names, as for roles. */
  get userNames(): readonly string[] {
    return [...this.users.keys()].sort(byBytes);
  }

  get roleNames(): readonly string[] {
    return [...this.roles.keys()].sort(byBytes);
  }

  isRoot(user: User): boolean {
    return user.roles.includes(rootName);
  }

  /** What the roles of the user allow. No range limits a holder of the role root, so this does not count then. */
  rangesOf(user: User): PermittedRanges {
    return this.#ranges.of(user.roles);
  }

  /** An estimate of the memory that it takes. */
  get bytes(): number {
    this.#bytes ??= this.#countBytes();
    return this.#bytes;
  }

  get #data(): AuthData {
    const { enabled, revision, enabledAt, users, roles } = this;
    return { enabled, revision, enabledAt, users, roles };
  }

  #countBytes(): number {
    let bytes = 0;
    for (const { name, passwordHash, roles } of this.users.values()) {
      bytes += overheadBytes * (1 + roles.length) + 2 * (name.length + passwordHash.length);
    }
    for (const role of this.roles.values()) bytes += bytesOfRole(role);
    return bytes;
  }
}

/** Most roles stay the same in a change, and one may have tens of thousands of permissions. */
const countedBytes = new WeakMap<Role, number>();

function bytesOfRole(role: Role): number {
  const counted = countedBytes.get(role);
  if (counted !== undefined) return counted;
  let bytes = overheadBytes + 2 * role.name.length;
  for (const { key, rangeEnd } of role.permissions) bytes += overheadBytes + key.length + rangeEnd.length;
  countedBytes.set(role, bytes);
  return bytes;
}
