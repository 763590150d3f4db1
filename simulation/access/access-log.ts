import { createHash } from 'node:crypto';
import { type AuthChange, type Command, type CoreError, coreError, type Requester } from '@tenure/core';
import { NaiveAccess } from '../../packages/core/src/testing/naive-access.ts';

/** The users, roles and permissions from one entry of the log on. */
export interface AccessVersion {
  readonly enabled: boolean;
  readonly access: NaiveAccess;
  /** The newest revision of the keys when it came into force. */
  readonly keyRevision: number;
}

export interface KeysNow {
  readonly revision: number;
  readonly keysOfLease: (id: bigint) => readonly string[];
}

const rootName = 'root';

/**
 * Users, roles and permissions as the durable log defines them, by a model without any code of the production rules.
 * All versions are kept: a checker asks whether one that was in force during a request explains its outcome.
 */
export class AccessLog {
  readonly versions: AccessVersion[] = [{ enabled: false, access: new NaiveAccess(), keyRevision: 0 }];
  /** Each change in the log, applied or not, with the version after it. */
  readonly #changes: { readonly text: string; readonly version: number }[] = [];
  /** The user of each token, and the auth revision of its login, by the token's digest. */
  readonly #issued = new Map<string, Requester>();
  #refusals = 0;

  /** The number of the newest version. */
  get newest(): number {
    return this.versions.length - 1;
  }

  get changeCount(): number {
    return this.#changes.length;
  }

  /** Requests that got into the log and were refused there. */
  get refusals(): number {
    return this.#refusals;
  }

  /** To be called for each command, in the order of the log. Returns why it has no effect, as far as users matter. */
  applied(command: Command, keys: KeysNow): CoreError | undefined {
    const refused = this.#refusalOf(command, keys.keysOfLease);
    if (refused !== undefined) {
      this.#refusals += 1;
      return refused;
    }
    if (command.kind === 'auth') this.#change(command.change, keys.revision);
    return undefined;
  }

  /** The version after the first such change from that number of changes on; undefined when the log has none. */
  versionOf(change: AuthChange, from: number): number | undefined {
    const text = textOf(change);
    return this.#changes.slice(from).find((each) => each.text === text)?.version;
  }

  /** The user of the token, and the auth revision of its login; undefined for a token that the log has not. */
  issuedFor(token: string): Requester | undefined {
    return this.#issued.get(createHash('sha256').update(token).digest('hex'));
  }

  /** The version that every server has which has made that revision of the keys. */
  versionBefore(keyRevision: number): number {
    let version = this.newest;
    while (version > 0 && this.versions[version]!.keyRevision >= keyRevision) version -= 1;
    return version;
  }

  #refusalOf(command: Command, keysOfLease: KeysNow['keysOfLease']): CoreError | undefined {
    const { enabled, access } = this.versions[this.newest]!;
    const { by } = command;
    if (!enabled) return undefined;
    switch (command.kind) {
      case 'put':
      case 'deleteRange':
      case 'txn':
      case 'leaseGrant':
      case 'leaseRevoke':
        break;
      case 'compact':
      case 'alarm':
      case 'removeMember':
        if (by === undefined) return undefined;
        break;
      case 'auth':
        if (command.change.kind === 'issueToken') return undefined;
        break;
      default:
        return undefined;
    }
    if (by === undefined) return coreError('UserEmpty');
    const refused = access.refusal(command, by, keysOfLease);
    return refused === undefined ? undefined : coreError(refused);
  }

  #change(change: AuthChange, keyRevision: number): void {
    const { enabled, access } = this.versions[this.newest]!;
    if (change.kind === 'issueToken') {
      const { user, tokenDigest, authRevision } = change;
      const isIssued = enabled && authRevision === access.revision && access.users.has(user);
      if (isIssued) this.#issued.set(tokenDigest, { user, authRevision });
      return;
    }
    if (change.kind === 'enable') {
      const isAble = access.users.get(rootName)?.roles.has(rootName) === true;
      const next = access.copy();
      next.enabledAt = access.revision;
      if (isAble && !enabled) this.#add({ enabled: true, access: next, keyRevision });
    } else if (change.kind === 'disable') {
      const next = access.copy();
      next.revision += 1;
      if (enabled) this.#add({ enabled: false, access: next, keyRevision });
    } else if (isPossible(change, access, enabled)) {
      const next = access.copy();
      next.changed(change);
      this.#add({ enabled, access: next, keyRevision });
    }
    this.#changes.push({ text: textOf(change), version: this.newest });
  }

  #add(version: AccessVersion): void {
    this.versions.push(version);
  }
}

/** Whether the change is not refused for what exists. */
function isPossible(change: AuthChange, { users, roles }: NaiveAccess, enabled: boolean): boolean {
  switch (change.kind) {
    case 'addUser':
      return !users.has(change.user);
    case 'deleteUser':
      return users.has(change.user) && !(enabled && change.user === rootName);
    case 'changePassword':
      return users.has(change.user);
    case 'grantRole':
      return users.has(change.user) && (change.role === rootName || roles.has(change.role));
    case 'revokeRole':
      return (
        users.get(change.user)?.roles.has(change.role) === true &&
        !(enabled && change.user === rootName && change.role === rootName)
      );
    case 'addRole':
      return !roles.has(change.role);
    case 'deleteRole':
    case 'grantPermission':
      return roles.has(change.role);
    case 'revokePermission':
      return roles.get(change.role)?.has(JSON.stringify([change.key, change.rangeEnd])) === true;
    default:
      return false;
  }
}

/** Equal for equal changes, whatever the order of their fields. */
function textOf(change: AuthChange): string {
  const fields = Object.entries(change).sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify(fields.map(([name, value]) => [name, typeof value === 'object' ? permissionOf(value) : value]));
}

function permissionOf({
  type,
  key,
  rangeEnd,
}: {
  readonly type: string;
  readonly key: string;
  readonly rangeEnd: string;
}) {
  return [type, key, rangeEnd];
}
