import type { Claim, Entered, Entry, EntryKey, LeaseBackend } from '../backend/lease-backend.ts';
import { queuePosition } from '../backend/queue-position.ts';
import { AcquireTimeoutError } from '../errors/acquire-timeout-error.ts';
import { BackendError } from '../errors/backend-error.ts';
import { LeaseHeldError } from '../errors/lease-held-error.ts';
import type { Random } from '../random/random.ts';
import type { Clock, Timer } from '../time/clock.ts';
import type { ElapsedTime } from '../time/elapsed-time.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import type { Terms } from './acquire-options.ts';
import { withTimeLimit } from './time-limit.ts';
import type { EntryRemovals } from './entry-removals.ts';
import { OwnEntry } from './own-entry.ts';
import type { QueueTarget } from './queue-target.ts';
import { QueueWatcher } from './queue-watcher.ts';
import type { Renewer } from './renewer.ts';
import { snapshotOf } from './shared-queue-reads.ts';
import type { QueueSnapshot, SharedQueueReads } from './shared-queue-reads.ts';

const callLimitMs = 5_000;
/** Between attempts to enter or to read the queue while the backend can't be reached. */
const retryMinMs = 50;
const retryMaxMs = 2_000;
/** How often an acquisition that does not wait enters when its entry ends before it can rely on it. */
const noWaitEntersMax = 3;

interface AcquisitionOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly random: Random;
  readonly time: ElapsedTime;
  readonly renewer: Renewer;
  readonly removals: EntryRemovals;
  readonly queueReads: SharedQueueReads;
  readonly holder: string;
  readonly target: QueueTarget;
  readonly terms: Terms;
  /** Called each time that an entry turns out to have to wait. */
  readonly onWaiting: () => void;
}

/**
 * One attempt to hold: enters the queue, waits there while entries ahead block it, and enters again if its entry was
 * lost meanwhile. If it ends without a hold, it removes its entry in the background, because a caller that cancels
 * does not want to wait for that.
 */
export class Acquisition {
  readonly #options: AcquisitionOptions;
  readonly #stopped = new AbortController();
  #watcher: QueueWatcher | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  #lastError: unknown;

  constructor(options: AcquisitionOptions) {
    this.#options = options;
  }

  /** Resolves with an entry that holds and is being renewed. Rejects with the reason given to `stop`. */
  async run(): Promise<OwnEntry> {
    const { signal, waitMs } = this.#options.terms;
    signal?.throwIfAborted();
    const offAbort = signal === undefined ? undefined : onAbort(signal, () => this.stop(signal.reason));
    if (waitMs > 0 && waitMs < Infinity) {
      this.#timer = this.#options.clock.setTimer(waitMs, () => {
        const cause = this.#lastError === undefined ? undefined : { cause: this.#lastError };
        this.stop(new AcquireTimeoutError(this.#options.target.name, waitMs, cause));
      });
    }
    try {
      return await this.#run();
    } finally {
      this.#timer?.cancel();
      offAbort?.();
      this.#watcher?.close();
    }
  }

  /** Ends the acquisition with an error, unless it has resolved already. */
  stop(reason: unknown): void {
    this.#stopped.abort(reason);
    this.#watcher?.wake();
  }

  async #run(): Promise<OwnEntry> {
    for (let enters = 1; ; enters++) {
      this.#stopped.signal.throwIfAborted();
      const entered = await this.#enter({ isFirst: enters === 1 });
      if (entered === undefined) continue;
      const { ownEntry } = entered;
      try {
        if (await this.#waitUntilHolds(ownEntry, entered.entries)) return ownEntry;
      } catch (error) {
        this.#abandon(ownEntry);
        throw error;
      }
      this.#abandon(ownEntry);
      await this.#pauseBeforeReentry(enters);
    }
  }

  async #pauseBeforeReentry(enters: number): Promise<void> {
    const { backend, terms } = this.#options;
    const error = new BackendError(backend.kind, 'unavailable', 'the entry ended before it could be relied on');
    if (terms.waitMs > 0) await this.#pauseAfter(error);
    else if (enters >= noWaitEntersMax) throw error;
  }

  /** Undefined if it failed and should be tried again. */
  async #enter(options: {
    readonly isFirst: boolean;
  }): Promise<{ ownEntry: OwnEntry; entries: readonly Entry[] } | undefined> {
    const { backend, random, time, terms, target, holder, removals } = this.#options;
    const claim: Claim = {
      name: target.queue,
      id: random.uuid(),
      holder,
      mode: target.mode,
      permits: target.permits,
      ttlMs: terms.ttlMs,
      data: terms.data,
    };
    const onlyIfHolds = terms.waitMs === 0;
    const sentAtMs = time.readMs();
    let entered: Entered;
    try {
      // An answer that comes after the TTL is of no use.
      const limitMs = Math.min(callLimitMs, terms.ttlMs);
      entered = await this.#attempt(limitMs, (signal) => backend.enter(claim, { onlyIfHolds, signal }));
    } catch (error) {
      // It is not known whether there is an entry, so it is removed by its id.
      const isUnknown = this.#stopped.signal.aborted || isTransient(error);
      if (isUnknown) removals.removeLater({ name: target.queue, id: claim.id, sequence: 0n });
      this.#stopped.signal.throwIfAborted();
      // The first failure tells the caller that the backend is unreachable; later ones are part of the waiting.
      if (options.isFirst || onlyIfHolds || !isTransient(error)) throw error;
      await this.#pauseAfter(error);
      return undefined;
    }
    const { sequence, entries } = entered;
    if (sequence === undefined) throw new LeaseHeldError(target.name, firstHolder(entries, target));
    this.#succeeded();
    const key: EntryKey = { name: target.queue, id: claim.id, sequence };
    const ownEntry = new OwnEntry({ key, ttlMs: terms.ttlMs, sentAtMs, time });
    return { ownEntry, entries };
  }

  /** True when the entry holds, false when it is gone. */
  async #waitUntilHolds(ownEntry: OwnEntry, entries: readonly Entry[]): Promise<boolean> {
    const { target, renewer, terms, onWaiting } = this.#options;
    const waiter = { gone: () => this.#watcher?.wake(), deadlineDue() {}, renewed() {}, renewFailed() {} };
    ownEntry.startWaiting(waiter);
    let snapshot: QueueSnapshot | undefined = snapshotOf(entries);
    let blockers: readonly Entry[] = [];
    for (let reads = 0; ; reads++) {
      this.#stopped.signal.throwIfAborted();
      if (ownEntry.isGone) return false;
      if (snapshot !== undefined) {
        if (snapshot.find(ownEntry.key) === undefined) return false;
        blockers = this.#stillBlocking(snapshot, blockers);
        if (blockers.length === 0) {
          const { holds, ahead } = queuePosition(snapshot.entries, { ...target, sequence: ownEntry.key.sequence });
          if (holds) return await this.#confirm(ownEntry);
          if (terms.waitMs === 0) throw new LeaseHeldError(target.name, ahead[0]?.holder);
          // All entries ahead must go, so it is enough to watch the last one. Of permits, any that is freed will do.
          blockers = target.mode === 'permit' ? ahead : ahead.slice(-1);
        }
        if (reads === 0) {
          // Only now is the watch worth its cost. Reading once more finds what changed before the watch began.
          onWaiting();
          renewer.add(ownEntry, ownEntry.enteredAtMs);
        } else {
          await this.#queueWatcher().nextRead(blockers);
        }
        if (this.#stopped.signal.aborted || ownEntry.isGone) continue;
      }
      snapshot = await this.#read();
    }
  }

  /** Those of the entries that are still in the way, where that alone proves that the own entry has to wait. */
  #stillBlocking(snapshot: QueueSnapshot, blockers: readonly Entry[]): readonly Entry[] {
    if (this.#options.target.mode === 'permit') return [];
    return blockers.map((entry) => snapshot.find(entry)).filter((entry) => entry !== undefined);
  }

  /** Undefined, after a pause, if the queue could not be read. */
  async #read(): Promise<QueueSnapshot | undefined> {
    try {
      const snapshot = await this.#queueWatcher().read(this.#stopped.signal);
      this.#succeeded();
      return snapshot;
    } catch (error) {
      this.#stopped.signal.throwIfAborted();
      if (!isTransient(error)) throw error;
      await this.#pauseAfter(error);
      return undefined;
    }
  }

  #queueWatcher(): QueueWatcher {
    this.#watcher ??= new QueueWatcher({ ...this.#options, queue: this.#options.target.queue });
    return this.#watcher;
  }

  /** Renews a first entry that was not renewed for so long that this process can't rely on it any more. */
  async #confirm(ownEntry: OwnEntry): Promise<boolean> {
    const { renewer, terms } = this.#options;
    // Without automatic renewal the TTL counts from now on, and not from when the waiting began.
    let isToRenew = !terms.isAutomatic && this.#watcher !== undefined;
    while ((isToRenew || ownEntry.hasPassed()) && !ownEntry.isGone) {
      renewer.add(ownEntry, ownEntry.enteredAtMs);
      const outcome = await renewer.renewNow(ownEntry);
      this.#stopped.signal.throwIfAborted();
      if (outcome.kind === 'failed') {
        if (terms.waitMs === 0) throw outcome.error;
        await this.#pauseAfter(outcome.error);
        this.#stopped.signal.throwIfAborted();
      } else {
        isToRenew = false;
      }
    }
    return !ownEntry.isGone;
  }

  #succeeded(): void {
    this.#failures = 0;
    this.#lastError = undefined;
  }

  async #pauseAfter(error: unknown): Promise<void> {
    this.#lastError = error;
    const pauseMs = Math.min(retryMaxMs, retryMinMs * 2 ** this.#failures++);
    await this.#queueWatcher().pause(pauseMs);
  }

  #attempt<T>(limitMs: number, call: (signal: Signal) => Promise<T>): Promise<T> {
    const { clock, backend } = this.#options;
    return withTimeLimit({ clock, backend: backend.kind, limitMs, signal: this.#stopped.signal }, call);
  }

  #abandon(ownEntry: OwnEntry): void {
    this.#options.renewer.remove(ownEntry);
    if (!ownEntry.isGone) this.#options.removals.removeLater(ownEntry.key);
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof BackendError && error.backendCode === 'unavailable';
}

/** The holder of the first entry that blocks one that would have come last. */
function firstHolder(entries: readonly Entry[], target: QueueTarget): string | undefined {
  const last = entries.at(-1)?.sequence ?? 0n;
  return queuePosition(entries, { ...target, sequence: last + 1n }).ahead[0]?.holder;
}
