import type { EntryKey } from '../backend/lease-backend.ts';
import type { ElapsedTime } from '../time/elapsed-time.ts';
import { HoldDeadline } from './hold-deadline.ts';
import type { Renewable } from './renewer.ts';

/** Is told what happens to an entry: the acquisition that waits with it, or the hold that it became. */
export interface OwnEntryObserver {
  /** The entry is gone permanently. */
  gone(): void;
  /** Called only while the entry checks its deadline, so only for a hold. */
  deadlineDue(): void;
  renewed(): void;
  renewFailed(error: unknown): void;
}

interface OwnEntryOptions {
  readonly key: EntryKey;
  readonly ttlMs: number;
  /** When the `enter` was sent that made the entry. */
  readonly sentAtMs: number;
  readonly time: ElapsedTime;
}

/** An entry that this process has in a queue, waiting or holding, and until when the process may rely on it. */
export class OwnEntry implements Renewable {
  readonly key: EntryKey;
  readonly ttlMs: number;
  readonly enteredAtMs: number;
  readonly #time: ElapsedTime;
  readonly #deadline: HoldDeadline;
  #observer: OwnEntryObserver | undefined;
  #checksDeadline = false;
  #isAutomatic = true;
  #isGone = false;
  #wasTried = false;
  #lastError: unknown;

  constructor(options: OwnEntryOptions) {
    this.key = options.key;
    this.ttlMs = options.ttlMs;
    this.enteredAtMs = options.sentAtMs;
    this.#time = options.time;
    this.#deadline = new HoldDeadline(options.sentAtMs, options.ttlMs);
  }

  /** A waiting entry is always renewed and has no deadline: only the answer that it is gone ends it. */
  startWaiting(observer: OwnEntryObserver): void {
    this.#observer = observer;
  }

  startHolding(observer: OwnEntryObserver, options: { readonly isAutomatic: boolean }): void {
    this.#observer = observer;
    this.#checksDeadline = true;
    this.#isAutomatic = options.isAutomatic;
  }

  get isAutomatic(): boolean {
    return this.#isAutomatic;
  }

  get checkDeadlineAtMs(): number {
    return this.#checksDeadline ? this.#deadline.atMs : Infinity;
  }

  get deadlineMs(): number {
    return this.#deadline.atMs;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Whether a renewal was sent since the last one that succeeded. */
  get wasTried(): boolean {
    return this.#wasTried;
  }

  /** The error of the last renewal, if it failed. */
  get lastError(): unknown {
    return this.#lastError;
  }

  hasPassed(): boolean {
    return this.#deadline.hasPassed(this.#time.readMs());
  }

  checkDeadline(): void {
    this.#observer?.deadlineDue();
  }

  sent(): void {
    this.#wasTried = true;
  }

  renewed(sentAtMs: number): void {
    // A hold whose deadline has passed is lost, even if the answer comes before the timer.
    if (this.#checksDeadline && this.hasPassed()) return this.checkDeadline();
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
