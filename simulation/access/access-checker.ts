import type { AuthChange, RequestOp } from '@tenure/core';
import { rangeRequest } from '../../packages/core/src/testing/requests.ts';
import type { AccessLog, AccessVersion } from './access-log.ts';
import { type NeededAccess, neededBy } from './access-need.ts';

/** Who asks: the user that the token was given to, if the client had one. */
export interface Identity {
  readonly user: string;
  readonly token: string | undefined;
}

/** A request without an outcome yet. */
export interface AskedRequest extends NeededAccess {
  readonly by: Identity;
  readonly path: string;
  readonly sentMs: number;
  /** No older version may decide. */
  readonly floor: number;
  /** No older keys of a lease may decide. */
  readonly keyFloor: number;
}

export interface KeyRange {
  readonly key: string;
  /** As in a range request. */
  readonly rangeEnd: string;
}

/** A watch that its server has accepted and not ended, as far as its client knows. */
export interface OpenWatch extends KeyRange {
  readonly by: Identity;
  readonly openedMs: number;
  /** Its server had this version when it accepted the watch, or a later one. */
  readonly floor: number;
}

export interface AccessCheckerOptions {
  readonly log: AccessLog;
  readonly trueMs: () => number;
  readonly report: (rule: string, what: string) => void;
  /** The newest revision that a client was told of, and the newest of the log. */
  readonly toldRevision: () => number;
  readonly currentRevision: () => number;
  readonly keysOfLeaseAt: (revision: number, id: bigint) => readonly string[];
}

/** By the permissions alone: no identity is too old. */
const newestIdentity = Number.MAX_SAFE_INTEGER;

/**
 * Judges who may do what. P1: each outcome of a request is explained by a version of users, roles and permissions that
 * was in force between the request and its answer, and none older than a change which had been acknowledged before the
 * request. W12: a watch is sent no event of a revision after the one from which its user may not read its keys, and
 * ends soon.
 */
export class AccessChecker {
  readonly #options: AccessCheckerOptions;
  readonly #watches = new Set<OpenWatch>();
  #floor = 0;

  constructor(options: AccessCheckerOptions) {
    this.#options = options;
  }

  get log(): AccessLog {
    return this.#options.log;
  }

  /** A change was acknowledged; `from` is the number of changes in the log when it was first requested. */
  acknowledged(change: AuthChange, from: number): void {
    const version = this.log.versionOf(change, from);
    if (version === undefined) this.#options.report('P1', `${change.kind} was acknowledged and is not in the log`);
    else this.#floor = Math.max(this.#floor, version);
  }

  /** Undefined for a request that is not judged. */
  asked(by: Identity, path: string, bytes: Uint8Array): AskedRequest | undefined {
    const needed = neededBy(path, bytes);
    return needed === undefined ? undefined : this.#askedFor(by, path, needed);
  }

  /** A watch is created by what its server has, which may be old. */
  askedToWatch(by: Identity, { key, rangeEnd }: KeyRange): AskedRequest {
    const need = { kind: 'operation', operation: reading(key, rangeEnd) } as const;
    return this.#askedFor(by, 'Watch', { need, isOfLease: false, isLocal: true });
  }

  allowed(asked: AskedRequest): void {
    if (this.#explains(asked, (version, keysOfLease) => this.#isAllowed(version, asked, keysOfLease))) return;
    this.#options.report('P1', `${this.#describe(asked)} was allowed`);
  }

  denied(asked: AskedRequest): void {
    const isDenied = (version: AccessVersion, keysOfLease: KeysOfLease): boolean =>
      version.enabled && !isPermitted(version, asked.by.user, asked, keysOfLease);
    if (this.#explains(asked, isDenied)) return;
    this.#options.report('P1', `${this.#describe(asked)} was denied`);
  }

  /** `revision` is that of the header of the reply. */
  opened(by: Identity, range: KeyRange, revision: number): OpenWatch {
    const watch = { by, ...range, floor: this.log.versionBefore(revision), openedMs: this.#options.trueMs() };
    this.#watches.add(watch);
    return watch;
  }

  /** The stream of the watch is over, or its server has ended it for another reason than its permission. */
  closed(watch: OpenWatch): void {
    this.#watches.delete(watch);
  }

  /** The server has ended the watch for its permission. */
  endedByPermission(watch: OpenWatch): void {
    this.closed(watch);
    const { versions } = this.log;
    // A watch that began without users has none.
    if (versions.slice(watch.floor).some((version) => !version.enabled || !mayWatch(version, watch))) return;
    this.#options.report('P1', `${describeWatch(watch)} was ended although its user could always read it`);
  }

  /** The watch was sent events; `revision` is that of the header. */
  sent(watch: OpenWatch, revision: number): void {
    const { versions } = this.log;
    const from = this.log.versionBefore(revision);
    if (versions.slice(from).some((version) => mayWatch(version, watch))) return;
    this.#options.report('W12', `${describeWatch(watch)} was sent events at revision ${revision}`);
  }

  /** The number of watches that must end, now that the newest change has been acknowledged. */
  get forbiddenWatches(): number {
    return [...this.#watches].filter((watch) => this.#mustEnd(watch)).length;
  }

  /** On a healthy cluster: watches that were open before `sinceMs`, and are forbidden since, are over. */
  checkEnded(sinceMs: number): void {
    for (const watch of this.#watches) {
      if (watch.openedMs > sinceMs || !this.#mustEnd(watch)) continue;
      this.#options.report('W12', `${describeWatch(watch)} goes on without the permission`);
    }
  }

  #mustEnd(watch: OpenWatch): boolean {
    return !this.log.versions.slice(this.#floor).some((version) => mayWatch(version, watch));
  }

  #askedFor(by: Identity, path: string, needed: NeededAccess): AskedRequest {
    const { trueMs, toldRevision } = this.#options;
    const floor = needed.isLocal ? 0 : this.#floor;
    return { ...needed, by, path, floor, keyFloor: toldRevision(), sentMs: trueMs() };
  }

  /** Whether a version of the time of the request explains it, with the keys of its lease at some revision of then. */
  #explains(asked: AskedRequest, isSo: (version: AccessVersion, keysOfLease: KeysOfLease) => boolean): boolean {
    const { currentRevision, keysOfLeaseAt } = this.#options;
    const versions = this.log.versions.slice(asked.floor);
    const last = asked.isOfLease ? currentRevision() : asked.keyFloor;
    for (let revision = last; revision >= asked.keyFloor; revision -= 1) {
      const keysOfLease: KeysOfLease = (id) => keysOfLeaseAt(revision, id);
      if (versions.some((version) => isSo(version, keysOfLease))) return true;
    }
    return false;
  }

  #isAllowed(version: AccessVersion, asked: AskedRequest, keysOfLease: KeysOfLease): boolean {
    const { enabled, access } = version;
    if (!enabled) return true;
    const { user, token } = asked.by;
    const issued = token === undefined ? undefined : this.log.issuedFor(token);
    const since = access.users.get(user)?.since ?? Infinity;
    if (issued === undefined || issued.user !== user) return false;
    if (issued.authRevision < since || issued.authRevision < access.enabledAt) return false;
    return isPermitted(version, user, asked, keysOfLease);
  }

  #describe({ path, by, sentMs, floor }: AskedRequest): string {
    const method = path.slice(path.lastIndexOf('/') + 1);
    const time = `sent at ${Math.round(sentMs)} ms`;
    return `${method} of ${by.user}, ${time}, by each version from ${floor} to ${this.log.newest} decided otherwise,`;
  }
}

type KeysOfLease = (id: bigint) => readonly string[];

function isPermitted(
  { access }: AccessVersion,
  user: string,
  { need }: NeededAccess,
  keysOfLease: KeysOfLease,
): boolean {
  const by = { user, authRevision: newestIdentity };
  const may = (operation: Parameters<typeof access.refusal>[0]): boolean =>
    access.refusal(operation, by, keysOfLease) === undefined;
  if (need.kind === 'operation') return may(need.operation);
  if (!access.users.has(user)) return false;
  return keysOfLease(need.id).every((key) => may(reading(key, '')));
}

function mayWatch({ enabled, access }: AccessVersion, { by, key, rangeEnd }: OpenWatch): boolean {
  if (!enabled) return true;
  const identity = { user: by.user, authRevision: newestIdentity };
  return by.token !== undefined && access.refusal(reading(key, rangeEnd), identity, () => []) === undefined;
}

function reading(key: string, rangeEnd: string): RequestOp {
  return { kind: 'range', range: rangeRequest(key, rangeEnd) };
}

function describeWatch({ by, key, rangeEnd, openedMs }: OpenWatch): string {
  return `the watch of ${JSON.stringify([key, rangeEnd])} by ${by.user}, opened at ${Math.round(openedMs)} ms,`;
}
