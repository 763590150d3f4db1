import { type AccessCheck, type CoreErrorCode, rangeEndOf, type Requester, type StateMachine } from '@tenure/core';
import { errorCatalogue } from '@tenure/protocol';
import type { Clock } from '../time/clock.ts';
import { GrpcCode } from '@tenure/grpc-server';
import type { ScheduledStream, StreamWatcher } from './stream-watch.ts';

/** Who may read what, by the state at this moment. Every change of users, roles or permissions makes another `auth`. */
export type WatchAccess = Pick<StateMachine, 'auth' | 'accessOf'>;

export interface WatchPermissionsOptions {
  readonly access: WatchAccess;
  readonly clock: Clock;
  /** How long checks may hold the event loop at once. */
  readonly sliceMs: number;
  readonly streams: Iterable<ScheduledStream>;
  /** Every watch has been checked by the current auth data. */
  readonly onRechecked: () => void;
}

/** As Go prints the codes with which the read of a range is refused. */
const codeNames: Readonly<Record<number, string>> = {
  [GrpcCode.invalidArgument]: 'InvalidArgument',
  [GrpcCode.permissionDenied]: 'PermissionDenied',
  [GrpcCode.unauthenticated]: 'Unauthenticated',
};

/** The cancel reason of a watch whose user has lost the permission. etcd's clients know this text without a code. */
export const permissionLost = errorCatalogue.PermissionDenied.text;

/**
 * Decides which watches may be created, and which may go on.
 *
 * A watch is sent nothing unless its user may read all its keys by the auth data of that moment. Each watch stores by
 * which version of the auth data it was last checked, and is checked again before it is sent something by a later one.
 * A change of auth data also starts a pass over all watches, in slices, so that idle ones end too. A further change
 * does not restart the pass, or frequent changes would keep the last watches from being checked: another pass follows.
 */
export class WatchPermissions {
  readonly #options: WatchPermissionsOptions;
  /** The auth data seen last, and the number of changes seen: enabling does not raise the auth revision. */
  #auth: WatchAccess['auth'];
  #version = 0;
  #pass: { readonly version: number; readonly watchers: Iterator<StreamWatcher> } | undefined;
  /** The check of the user checked last: watches of one stream mostly have the same user. */
  #last: { readonly user: string; readonly check: AccessCheck | undefined } | undefined;
  #isTurnDue = false;
  #isStopped = false;

  constructor(options: WatchPermissionsOptions) {
    this.#options = options;
    this.#auth = options.access.auth;
  }

  /** Whether there may be watches that were not checked by the current auth data. */
  get isRechecking(): boolean {
    return this.#pass !== undefined;
  }

  /** The version of the auth data by which a watch created now is checked. */
  get version(): number {
    return this.#version;
  }

  /** Why a watch may not be created, in etcd's words; undefined if it may. `rangeEnd` as in the request. */
  refusalOf(by: Requester | undefined, range: { readonly key: string; readonly rangeEnd: string }): string | undefined {
    this.refresh();
    const refused = this.#options.access.accessOf(by)?.read(range);
    return refused === undefined ? undefined : reasonOf(refused.code);
  }

  /** Whether the watch may be sent something. If not, this has ended it. `refresh` must be called in the same turn. */
  admits(watcher: StreamWatcher): boolean {
    return watcher.owner.checkedBy === this.#version || this.#check(watcher);
  }

  /** Notices a change of the auth data. */
  refresh(): void {
    if (this.#options.access.auth !== this.#auth) this.#changed();
  }

  /** Notices a change of the auth data, and checks watches, as far as the slice allows that began at `beganMs`. */
  recheck(beganMs: number): void {
    if (this.#options.access.auth === this.#auth) return;
    const isRechecking = this.isRechecking;
    this.#changed();
    const untilMs = beganMs + this.#options.sliceMs;
    if (!isRechecking && this.#options.clock.monotonicMs() < untilMs) this.#checkUntil(untilMs);
  }

  stop(): void {
    this.#isStopped = true;
  }

  #changed(): void {
    this.#auth = this.#options.access.auth;
    this.#version += 1;
    this.#last = undefined;
    // While authentication is disabled everything may be read.
    if (this.#pass !== undefined || !this.#auth.enabled) return;
    this.#begin();
    this.#schedule();
  }

  #begin(): void {
    this.#pass = { version: this.#version, watchers: watchersOf(this.#options.streams) };
  }

  #schedule(): void {
    if (this.#isTurnDue) return;
    this.#isTurnDue = true;
    const { clock, sliceMs } = this.#options;
    clock.soon(() => {
      this.#isTurnDue = false;
      if (this.#isStopped) return;
      this.refresh();
      this.#checkUntil(clock.monotonicMs() + sliceMs);
      if (this.isRechecking) this.#schedule();
    });
  }

  /** At least one watch. */
  #checkUntil(untilMs: number): void {
    const { clock, onRechecked } = this.#options;
    do {
      if (this.#pass === undefined) return;
      const next = this.#pass.watchers.next();
      if (next.done !== true) this.admits(next.value);
      else if (this.#pass.version !== this.#version && this.#auth.enabled) this.#begin();
      else {
        this.#pass = undefined;
        onRechecked();
      }
    } while (clock.monotonicMs() < untilMs);
  }

  #check(watcher: StreamWatcher): boolean {
    const { range, owner } = watcher;
    const refused = this.#checkOf(owner.user)?.read({ key: range.start, rangeEnd: rangeEndOf(range) });
    if (refused !== undefined) {
      owner.stream.deny(watcher);
      return false;
    }
    owner.checkedBy = this.#version;
    return true;
  }

  /** By the current auth data: the user counts, not the token, so that a new password does not end a watch. */
  #checkOf(user: string): AccessCheck | undefined {
    if (this.#last?.user === user) return this.#last.check;
    const { access } = this.#options;
    const check = access.accessOf(user === '' ? undefined : { user, authRevision: access.auth.revision });
    this.#last = { user, check };
    return check;
  }
}

function* watchersOf(streams: Iterable<ScheduledStream>): Generator<StreamWatcher> {
  for (const stream of streams) yield* stream.watchers;
}

/** A Go client creates its watch again, with a new token, only if the text is exactly that of a Go error. */
function reasonOf(code: CoreErrorCode): string {
  const { code: status, text } = errorCatalogue[code];
  return `rpc error: code = ${codeNames[status]} desc = ${text}`;
}
