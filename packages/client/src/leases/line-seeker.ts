import type { Claim, Entered, Entry, EntryKey, EntryMode, LeaseBackend } from '../backend/lease-backend.ts';
import { standing } from '../backend/standing.ts';
import { AcquireTimeoutError } from '../errors/acquire-timeout-error.ts';
import { BackendError } from '../errors/backend-error.ts';
import { LeaseHeldError } from '../errors/lease-held-error.ts';
import type { Clock, Timer } from '../time/clock.ts';
import type { ElapsedTime } from '../time/elapsed-time.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import type { Terms } from './acquire-options.ts';
import { attempt } from './attempt.ts';
import type { Departures } from './departures.ts';
import { LinePlace } from './line-place.ts';
import { lookAt } from './line-views.ts';
import type { LineViews, Look } from './line-views.ts';
import { Lookout } from './lookout.ts';
import type { Renewer } from './renewer.ts';

const callLimitMs = 5_000;
/** Between attempts to enter or to read the line while the backend can't be reached. */
const retryMinMs = 50;
const retryMaxMs = 2_000;
/** How often one that does not want to wait enters again, when its entry has ended before it could be counted on. */
const hastyEntersMax = 3;

/** Which line, and as what. */
export interface LineSpot {
  /** The name that the backend knows. */
  readonly line: string;
  /** The name that the user knows. */
  readonly name: string;
  readonly mode: EntryMode;
  readonly permits: number;
}

interface SeekerOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly time: ElapsedTime;
  readonly renewer: Renewer;
  readonly departures: Departures;
  readonly views: LineViews;
  readonly holder: string;
  readonly spot: LineSpot;
  readonly terms: Terms;
  /** Called each time that it turns out that there is somebody to wait for. */
  readonly onWaiting: () => void;
}

/**
 * Gets one place in a line to where it holds: enters, stays in the line while others stand before it, enters anew if
 * the entry was lost meanwhile. However it ends without a hold, it takes its entry back, in the background, since who
 * cancels does not want to wait for that.
 */
export class LineSeeker {
  readonly #options: SeekerOptions;
  readonly #stopped = new AbortController();
  #lookout: Lookout | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  #lastError: unknown;

  constructor(options: SeekerOptions) {
    this.#options = options;
  }

  /** The place, which holds and is being renewed. Rejects with whatever the seeker was stopped with. */
  async seek(): Promise<LinePlace> {
    const { signal, waitMs } = this.#options.terms;
    signal?.throwIfAborted();
    const offAbort = signal === undefined ? undefined : onAbort(signal, () => this.stop(signal.reason));
    if (waitMs > 0 && waitMs < Infinity) {
      this.#timer = this.#options.clock.setTimer(waitMs, () => {
        const cause = this.#lastError === undefined ? undefined : { cause: this.#lastError };
        this.stop(new AcquireTimeoutError(this.#options.spot.name, waitMs, cause));
      });
    }
    try {
      return await this.#seek();
    } finally {
      this.#timer?.cancel();
      offAbort?.();
      this.#lookout?.close();
    }
  }

  /** Ends the seeking with an error, unless it has a hold already. */
  stop(reason: unknown): void {
    this.#stopped.abort(reason);
    this.#lookout?.wake();
  }

  async #seek(): Promise<LinePlace> {
    for (let enters = 1; ; enters++) {
      this.#stopped.signal.throwIfAborted();
      const found = await this.#enter({ isFirst: enters === 1 });
      if (found === undefined) continue;
      const { place } = found;
      try {
        if (await this.#stand(place, found.entries)) return place;
      } catch (error) {
        this.#giveUp(place);
        throw error;
      }
      this.#giveUp(place);
      await this.#comeBack(enters);
    }
  }

  /** Its entry is gone, and it will enter anew. */
  async #comeBack(enters: number): Promise<void> {
    const { backend, terms } = this.#options;
    const error = new BackendError(backend.kind, 'unavailable', 'the entry ended before it could be counted on');
    if (terms.waitMs > 0) await this.#pauseAfter(error);
    else if (enters >= hastyEntersMax) throw error;
  }

  /** Nothing if it failed and should be tried again. */
  async #enter(options: {
    readonly isFirst: boolean;
  }): Promise<{ place: LinePlace; entries: readonly Entry[] } | void> {
    const { backend, time, terms, spot, holder, departures } = this.#options;
    const claim: Claim = {
      name: spot.line,
      id: crypto.randomUUID(),
      holder,
      mode: spot.mode,
      permits: spot.permits,
      ttlMs: terms.ttlMs,
      data: terms.data,
    };
    const onlyIfHolds = terms.waitMs === 0;
    const sentAtMs = time.readMs();
    let entered: Entered;
    try {
      // An answer that comes after the end of the entry's life is of no use.
      const limitMs = Math.min(callLimitMs, terms.ttlMs);
      entered = await this.#attempt(limitMs, (signal) => backend.enter(claim, { onlyIfHolds, signal }));
    } catch (error) {
      // Whether there is an entry is not known, so it is taken back by its id.
      const isUnknown = this.#stopped.signal.aborted || isPassing(error);
      if (isUnknown) departures.leaveLater({ name: spot.line, id: claim.id, ticket: 0n });
      this.#stopped.signal.throwIfAborted();
      // The first one tells the caller that there is no reaching the backend; later ones are part of the waiting.
      if (options.isFirst || onlyIfHolds || !isPassing(error)) throw error;
      await this.#pauseAfter(error);
      return undefined;
    }
    const { ticket, entries } = entered;
    if (ticket === undefined) throw new LeaseHeldError(spot.name, firstHolder(entries, spot));
    this.#succeeded();
    const entry: EntryKey = { name: spot.line, id: claim.id, ticket };
    const place = new LinePlace({ entry, ttlMs: terms.ttlMs, sentAtMs, time });
    return { place, entries };
  }

  /** True when it holds, false when the entry is gone. */
  async #stand(place: LinePlace, entered: readonly Entry[]): Promise<boolean> {
    const { spot, renewer, terms, onWaiting } = this.#options;
    const waiter = { gone: () => this.#lookout?.wake(), deadlineDue() {}, renewed() {}, renewFailed() {} };
    place.waitBy(waiter);
    let look: Look | undefined = lookAt(entered);
    let behind: readonly Entry[] = [];
    for (let looks = 0; ; looks++) {
      this.#stopped.signal.throwIfAborted();
      if (place.isGone) return false;
      if (look !== undefined) {
        if (look.find(place.entry) === undefined) return false;
        behind = this.#stillBehind(look, behind);
        if (behind.length === 0) {
          const { holds, ahead } = standing(look.entries, { ...spot, ticket: place.entry.ticket });
          if (holds) return await this.#confirm(place);
          if (terms.waitMs === 0) throw new LeaseHeldError(spot.name, ahead[0]?.holder);
          // All that is in the way must go, so nothing can change while the last of it stands. Of permits any will do.
          behind = spot.mode === 'permit' ? ahead : ahead.slice(-1);
        }
        if (looks === 0) {
          // Only now is it worth watching, and what changed before the watch was there is seen by looking once more.
          onWaiting();
          renewer.add(place, place.enteredAtMs);
        } else {
          await this.#watching().next(behind);
        }
        if (this.#stopped.signal.aborted || place.isGone) continue;
      }
      look = await this.#look();
    }
  }

  /** Those of them that are still in the way, if that is enough to know that one has to wait. */
  #stillBehind(look: Look, behind: readonly Entry[]): readonly Entry[] {
    if (this.#options.spot.mode === 'permit') return [];
    return behind.map((entry) => look.find(entry)).filter((entry) => entry !== undefined);
  }

  /** Nothing if the line could not be read just now; it has waited a while then. */
  async #look(): Promise<Look | undefined> {
    try {
      const look = await this.#watching().look(this.#stopped.signal);
      this.#succeeded();
      return look;
    } catch (error) {
      this.#stopped.signal.throwIfAborted();
      if (!isPassing(error)) throw error;
      await this.#pauseAfter(error);
      return undefined;
    }
  }

  #watching(): Lookout {
    this.#lookout ??= new Lookout({ ...this.#options, line: this.#options.spot.line });
    return this.#lookout;
  }

  /** It stands first, but may not have been renewed for so long that this process can't count on it any more. */
  async #confirm(place: LinePlace): Promise<boolean> {
    const { renewer, terms } = this.#options;
    // One that nobody will renew lasts as long as it was asked for from now on, and not from when it began to wait.
    let isToRenew = !terms.isAutomatic && this.#lookout !== undefined;
    while ((isToRenew || place.hasPassed()) && !place.isGone) {
      renewer.add(place, place.enteredAtMs);
      const outcome = await renewer.renewNow(place);
      this.#stopped.signal.throwIfAborted();
      if (outcome.kind === 'failed') {
        if (terms.waitMs === 0) throw outcome.error;
        await this.#pauseAfter(outcome.error);
        this.#stopped.signal.throwIfAborted();
      } else {
        isToRenew = false;
      }
    }
    return !place.isGone;
  }

  #succeeded(): void {
    this.#failures = 0;
    this.#lastError = undefined;
  }

  async #pauseAfter(error: unknown): Promise<void> {
    this.#lastError = error;
    const pauseMs = Math.min(retryMaxMs, retryMinMs * 2 ** this.#failures++);
    await this.#watching().pause(pauseMs);
  }

  #attempt<T>(limitMs: number, call: (signal: Signal) => Promise<T>): Promise<T> {
    const { clock, backend } = this.#options;
    return attempt({ clock, backend: backend.kind, limitMs, signal: this.#stopped.signal }, call);
  }

  #giveUp(place: LinePlace): void {
    this.#options.renewer.remove(place);
    if (!place.isGone) this.#options.departures.leaveLater(place.entry);
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof BackendError && error.backendCode === 'unavailable';
}

/** Who is in the way of one that would have stood last. */
function firstHolder(entries: readonly Entry[], spot: LineSpot): string | undefined {
  const last = entries.at(-1)?.ticket ?? 0n;
  return standing(entries, { ...spot, ticket: last + 1n }).ahead[0]?.holder;
}
