import { type Role, rootName, type User } from './auth-types.ts';
import { PermittedRanges } from './permitted-ranges.ts';

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
  readonly #ranges = new Map<string, PermittedRanges>();
  #bytes: number | undefined;

  constructor({ enabled, revision, enabledAt, users, roles }: AuthData) {
    this.enabled = enabled;
    this.revision = revision;
    this.enabledAt = enabledAt;
    this.users = users;
    this.roles = roles;
  }

  /** The state with these changes, at the next revision. */
  with(changed: Partial<AuthData>): AuthState {
    return new AuthState({ ...this.#data, ...changed, revision: this.revision + 1 });
  }

  /** Enabled, at the same revision. */
  enable(): AuthState {
    return new AuthState({ ...this.#data, enabled: true, enabledAt: this.revision });
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
    const known = this.#ranges.get(user.name);
    if (known !== undefined) return known;
    const ranges = new PermittedRanges();
    for (const role of user.roles) {
      for (const permission of this.roles.get(role)?.permissions ?? []) ranges.add(permission);
    }
    this.#ranges.set(user.name, ranges);
    return ranges;
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
    for (const { name, permissions } of this.roles.values()) {
      bytes += overheadBytes + 2 * name.length;
      for (const { key, rangeEnd } of permissions) bytes += overheadBytes + key.length + rangeEnd.length;
    }
    return bytes;
  }
}
