import type { EntryKey } from '../backend/lease-backend.ts';
import type { ElapsedTime } from '../time/elapsed-time.ts';
import { HoldDeadline } from './hold-deadline.ts';
import type { Renewable } from './renewer.ts';

/** Who cares for what becomes of a place: the one that waits at it, or the hold that it became. */
export interface PlaceObserver {
  /** The entry is gone for ever. */
  gone(): void;
  /** Only for one that asked to look at the deadline. */
  deadlineDue(): void;
  renewed(): void;
  renewFailed(error: unknown): void;
}

interface PlaceOptions {
  readonly entry: EntryKey;
  readonly ttlMs: number;
  /** When the `enter` was sent that made the entry. */
  readonly sentAtMs: number;
  readonly time: ElapsedTime;
}

/** An entry of this process's own in the line of a name, waiting or holding, and how long it may be counted on. */
export class LinePlace implements Renewable {
  readonly entry: EntryKey;
  readonly ttlMs: number;
  readonly enteredAtMs: number;
  readonly #time: ElapsedTime;
  readonly #deadline: HoldDeadline;
  #observer: PlaceObserver | undefined;
  #looksAtDeadline = false;
  #isAutomatic = true;
  #isGone = false;
  #wasTried = false;
  #lastError: unknown;

  constructor(options: PlaceOptions) {
    this.entry = options.entry;
    this.ttlMs = options.ttlMs;
    this.enteredAtMs = options.sentAtMs;
    this.#time = options.time;
    this.#deadline = new HoldDeadline(options.sentAtMs, options.ttlMs);
  }

  /** Who waits is renewed in any case, and has no deadline: an answer that it is gone is the end of it. */
  waitBy(observer: PlaceObserver): void {
    this.#observer = observer;
  }

  holdBy(observer: PlaceObserver, options: { readonly isAutomatic: boolean }): void {
    this.#observer = observer;
    this.#looksAtDeadline = true;
    this.#isAutomatic = options.isAutomatic;
  }

  get isAutomatic(): boolean {
    return this.#isAutomatic;
  }

  get lookAtMs(): number {
    return this.#looksAtDeadline ? this.#deadline.atMs : Infinity;
  }

  get deadlineMs(): number {
    return this.#deadline.atMs;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Whether a renewal was tried since the last one that succeeded. */
  get wasTried(): boolean {
    return this.#wasTried;
  }

  /** Of the last renewal, if it failed. */
  get lastError(): unknown {
    return this.#lastError;
  }

  hasPassed(): boolean {
    return this.#deadline.hasPassed(this.#time.readMs());
  }

  look(): void {
    this.#observer?.deadlineDue();
  }

  sent(): void {
    this.#wasTried = true;
  }

  renewed(sentAtMs: number): void {
    // An answer after the deadline raises nobody from the dead: who looks at the deadline is told of it first.
    if (this.#looksAtDeadline && this.hasPassed()) return this.look();
    this.#wasTried = false;
    this.#lastError = undefined;
    this.#deadline.extend(sentAtMs, this.ttlMs);
    this.#observer?.renewed();
  }

  failed(error: unknown): void {
    this.#lastError = error;
    this.#observer?.renewFailed(error);
  }

  gone(): void {
    this.#isGone = true;
    this.#observer?.gone();
  }
}
