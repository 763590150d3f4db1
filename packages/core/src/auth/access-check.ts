import { type CoreError, coreError } from '../core-error.ts';
import type { LeaseCollection } from '../lease/lease-collection.ts';
import { endOfRange, type IntervalSet } from '../mvcc/interval-set.ts';
import type { PutRequest, RequestOp, TxnRequest } from '../mvcc/kv-types.ts';
import type { AuthState } from './auth-state.ts';
import { oldToken, type Requester, type User } from './auth-types.ts';
import type { PermittedRanges } from './permitted-ranges.ts';

/** What a requester may do. Undefined in place of an error: it is allowed. */
type Verdict = CoreError | undefined;

interface KeyRange {
  readonly key: string;
  readonly rangeEnd: string;
}

type Leases = Pick<LeaseCollection, 'keyOutside'>;

/**
 * Decides whether `by` may do something while authentication is enabled; the only place that decides it, for commands
 * when they are applied and for reads when they read. Undefined `by` is a client without an identity.
 *
 * Every operation of both branches of a transaction is checked, nested ones too, and every comparison as a read: what a
 * transaction would do otherwise must not be told by its outcome.
 */
export class AccessCheck {
  readonly #auth: AuthState;
  readonly #leases: Leases;
  readonly #by: Requester | undefined;
  #ranges: PermittedRanges | undefined;

  constructor(auth: AuthState, leases: Leases, by: Requester | undefined) {
    this.#auth = auth;
    this.#leases = leases;
    this.#by = by;
  }

  /** Any user. */
  user(): Verdict {
    const user = this.#user();
    return 'code' in user ? user : undefined;
  }

  /** A user with the role root. */
  root(): Verdict {
    const user = this.#user();
    if ('code' in user) return user;
    return this.#auth.isRoot(user) ? undefined : coreError('PermissionDenied');
  }

  /** The user themself, or root. */
  self(name: string): Verdict {
    const refused = this.root();
    return refused === undefined || (this.#by?.user === name && name !== '') ? undefined : refused;
  }

  /** A user with that role, or root. */
  holderOf(role: string): Verdict {
    const refused = this.root();
    if (refused === undefined) return undefined;
    const user = this.#auth.users.get(this.#by?.user ?? '');
    return user?.roles.includes(role) === true ? undefined : refused;
  }

  read(range: KeyRange): Verdict {
    return this.#range('read', range);
  }

  put(request: PutRequest): Verdict {
    return this.#put(request, new Set());
  }

  deleteRange(range: KeyRange & { readonly prevKv: boolean }): Verdict {
    return (range.prevKv ? this.read(range) : undefined) ?? this.#range('write', range);
  }

  /** One that does nothing needs a user all the same: its answer names the revision. */
  txn(request: TxnRequest): Verdict {
    return this.#txn(request, new Set());
  }

  /** All keys attached to a lease, whose end deletes them. A lease without keys needs a user only. */
  writeKeysOf(lease: bigint): Verdict {
    return this.#keysOf(lease, 'write');
  }

  readKeysOf(lease: bigint): Verdict {
    return this.#keysOf(lease, 'read');
  }

  #keysOf(lease: bigint, type: 'read' | 'write'): Verdict {
    const allowed = this.#allowed(type);
    if (allowed === undefined || 'code' in allowed) return allowed;
    return this.#leases.keyOutside(lease, allowed) === undefined ? undefined : coreError('PermissionDenied');
  }

  /** `checked`: the leases whose keys may be written. Many puts of one lease must not look at all its keys each. */
  #put({ key, lease, prevKv }: PutRequest, checked: Set<bigint>): Verdict {
    const range: KeyRange = { key, rangeEnd: '' };
    const refused = this.#range('write', range) ?? (prevKv ? this.read(range) : undefined);
    if (refused !== undefined || lease === 0n || checked.has(lease)) return refused;
    checked.add(lease);
    return this.writeKeysOf(lease);
  }

  #txn({ compare, success, failure }: TxnRequest, checked: Set<bigint>): Verdict {
    return (
      this.user() ??
      firstOf(compare, (one) => this.read(one)) ??
      firstOf(success, (op) => this.#operation(op, checked)) ??
      firstOf(failure, (op) => this.#operation(op, checked))
    );
  }

  #operation(op: RequestOp, checked: Set<bigint>): Verdict {
    switch (op.kind) {
      case 'range':
        return this.read(op.range);
      case 'put':
        return this.#put(op.put, checked);
      case 'deleteRange':
        return this.deleteRange(op.deleteRange);
      case 'txn':
        return this.#txn(op.txn, checked);
      case 'empty':
        return undefined;
    }
  }

  #range(type: 'read' | 'write', { key, rangeEnd }: KeyRange): Verdict {
    const allowed = this.#allowed(type);
    if (allowed === undefined || 'code' in allowed) return allowed;
    return allowed.covers(key, endOfRange(key, rangeEnd)) ? undefined : coreError('PermissionDenied');
  }

  /** The ranges in which the requester may read or write; undefined for all. */
  #allowed(type: 'read' | 'write'): IntervalSet | CoreError | undefined {
    const user = this.#user();
    if ('code' in user) return user;
    if (this.#auth.isRoot(user)) return undefined;
    this.#ranges ??= this.#auth.rangesOf(user);
    return this.#ranges[type];
  }

  /**
   * The identity must not be older than the user, the user's password, or the last time that authentication was
   * enabled: a server that lags may still take it for valid. The permissions are those of this moment, so
   * an identity from before another change is as good as a new one.
   */
  #user(): User | CoreError {
    const refused = identityRefusal(this.#by);
    if (refused !== undefined) return refused;
    const user = this.#auth.users.get(this.#by?.user ?? '');
    if (user === undefined) return coreError('PermissionDenied');
    const since = Math.max(user.since, this.#auth.enabledAt);
    return (this.#by?.authRevision ?? 0) < since ? coreError('AuthOldRevision') : user;
  }
}

/** Why a client is no user, whatever the auth data says. */
export function identityRefusal(by: Requester | undefined): CoreError | undefined {
  if (by === undefined || by.authRevision === 0) return coreError('UserEmpty');
  if (by === oldToken) return coreError('AuthOldRevision');
  return by.authRevision < 0 ? coreError('InvalidAuthToken') : undefined;
}

function firstOf<Item>(items: readonly Item[], check: (item: Item) => Verdict): Verdict {
  for (const item of items) {
    const refused = check(item);
    if (refused !== undefined) return refused;
  }
  return undefined;
}
