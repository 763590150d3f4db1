import type { AuthChange, Permission, Requester } from '../auth/auth-types.ts';
import type { Command } from '../state-machine/command.ts';
import type { RequestOp, TxnRequest } from '../mvcc/kv-types.ts';

interface NaiveUser {
  readonly roles: Set<string>;
  since: number;
}

type Right = 'read' | 'write';
export type Refusal = 'UserEmpty' | 'AuthOldRevision' | 'PermissionDenied';

const behindAll = '\u{100}';

function endOf(key: string, rangeEnd: string): string {
  if (rangeEnd === '') return `${key}\0`;
  return rangeEnd === '\0' ? behindAll : rangeEnd;
}

/**
 * Users and roles for comparison: no caches and no merged intervals. A range is allowed if some permission contains its
 * first key, and each end of a permission inside it.
 */
export class NaiveAccess {
  revision = 1;
  /** The revision at which authentication was last enabled. */
  enabledAt = 0;
  readonly users = new Map<string, NaiveUser>();
  readonly roles = new Map<string, Map<string, Permission>>();

  copy(): NaiveAccess {
    const copy = new NaiveAccess();
    copy.revision = this.revision;
    copy.enabledAt = this.enabledAt;
    for (const [name, { roles, since }] of this.users) copy.users.set(name, { roles: new Set(roles), since });
    for (const [name, permissions] of this.roles) copy.roles.set(name, new Map(permissions));
    return copy;
  }

  /** A change that was not refused. */
  changed(change: AuthChange): void {
    this.revision += 1;
    switch (change.kind) {
      case 'addUser':
        this.users.set(change.user, { roles: new Set(), since: this.revision });
        break;
      case 'deleteUser':
        this.users.delete(change.user);
        break;
      case 'changePassword':
        this.users.get(change.user)!.since = this.revision;
        break;
      case 'grantRole': {
        const { roles } = this.users.get(change.user)!;
        if (roles.has(change.role)) this.revision -= 1;
        roles.add(change.role);
        break;
      }
      case 'revokeRole':
        this.users.get(change.user)!.roles.delete(change.role);
        break;
      case 'addRole':
        this.roles.set(change.role, new Map());
        break;
      case 'deleteRole':
        this.roles.delete(change.role);
        for (const { roles } of this.users.values()) roles.delete(change.role);
        break;
      case 'grantPermission':
        this.roles.get(change.role)!.set(rangeName(change.permission), change.permission);
        break;
      case 'revokePermission':
        this.roles.get(change.role)!.delete(rangeName(change));
        break;
      default:
        throw new Error(`the model does not know ${change.kind}`);
    }
  }

  refusal(
    command: Command | RequestOp,
    by: Requester,
    keysOfLease: (id: bigint) => readonly string[],
  ): Refusal | undefined {
    if (by.authRevision === 0) return 'UserEmpty';
    const user = this.users.get(by.user);
    if (user === undefined) return 'PermissionDenied';
    if (by.authRevision < Math.max(user.since, this.enabledAt)) return 'AuthOldRevision';
    if (user.roles.has('root')) return undefined;
    const may = (right: Right, key: string, rangeEnd = ''): boolean => this.#may(user, right, key, rangeEnd);
    const mayEnd = (id: bigint): boolean => keysOfLease(id).every((key) => may('write', key));
    const mayOp = (op: RequestOp): boolean => {
      switch (op.kind) {
        case 'range':
          return may('read', op.range.key, op.range.rangeEnd);
        case 'put': {
          const { key, lease, prevKv } = op.put;
          return may('write', key) && (!prevKv || may('read', key)) && (lease === 0n || mayEnd(lease));
        }
        case 'deleteRange': {
          const { key, rangeEnd, prevKv } = op.deleteRange;
          return may('write', key, rangeEnd) && (!prevKv || may('read', key, rangeEnd));
        }
        case 'txn':
          return mayTxn(op.txn);
        case 'empty':
          return true;
      }
    };
    const mayTxn = ({ compare, success, failure }: TxnRequest): boolean =>
      compare.every(({ key, rangeEnd }) => may('read', key, rangeEnd)) && [...success, ...failure].every(mayOp);
    const isAllowed =
      command.kind === 'leaseGrant' ||
      (command.kind === 'leaseRevoke' ? mayEnd(command.id) : mayOp(command as RequestOp));
    return isAllowed ? undefined : 'PermissionDenied';
  }

  #may(user: NaiveUser, right: Right, key: string, rangeEnd: string): boolean {
    const permissions = [...user.roles].flatMap((role) => [...(this.roles.get(role)?.values() ?? [])]);
    const intervals = permissions
      .filter(({ type }) => type === 'readWrite' || type === right)
      .map((permission) => [permission.key, endOf(permission.key, permission.rangeEnd)] as const);
    const end = endOf(key, rangeEnd);
    const contains = (point: string): boolean => intervals.some(([from, to]) => from <= point && point < to);
    if (!contains(key)) return false;
    return intervals.every(([, to]) => to < key || to >= end || contains(to));
  }
}

function rangeName({ key, rangeEnd }: { readonly key: string; readonly rangeEnd: string }): string {
  return JSON.stringify([key, rangeEnd]);
}
