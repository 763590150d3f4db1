import type { EntryKey, LeaseBackend } from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Clock } from '../time/clock.ts';
import type { ProcessRef } from '../time/process-ref.ts';
import { sleep } from '../time/sleep.ts';
import { withTimeLimit } from './time-limit.ts';

const leaveLimitMs = 5_000;
/** How often a removal is retried in the background. After that the entry expires by its TTL. */
const laterAttemptsMax = 5;
const firstDelayMs = 200;

interface EntryRemovalsOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly processRef: ProcessRef;
}

/** Removes entries from their queues, in the background where no caller waits for it. */
export class EntryRemovals {
  readonly #backend: LeaseBackend;
  readonly #clock: Clock;
  readonly #processRef: ProcessRef;
  readonly #inFlight = new Set<Promise<void>>();
  readonly #ending = new AbortController();

  constructor(options: EntryRemovalsOptions) {
    this.#backend = options.backend;
    this.#clock = options.clock;
    this.#processRef = options.processRef;
  }

  /** Returns whether the entry was there. Rejects with a BackendError, and then goes on trying in the background. */
  async remove(entry: EntryKey): Promise<boolean> {
    try {
      return await this.#firstAttempt(entry);
    } catch (error) {
      if (isRetryable(error)) this.#track(this.#retry(entry));
      throw error;
    }
  }

  /** Begins at once and reports no outcome. A sequence number of 0 means that the number never became known. */
  removeLater(entry: EntryKey): void {
    if (entry.sequence === 0n) this.#track(this.#removeUnacknowledged(entry));
    else this.#track(this.remove(entry).then(ignore, ignore));
  }

  /** Resolves when no removal is in flight. Removals that still fail are given up. */
  async end(): Promise<void> {
    this.#ending.abort();
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight);
  }

  /** Keeps the process alive, since other waiters would wait for the whole TTL. Retries do not. */
  #firstAttempt(entry: EntryKey): Promise<boolean> {
    return this.#processRef.during(() => this.#attempt(entry));
  }

  #attempt(entry: EntryKey): Promise<boolean> {
    const options = { clock: this.#clock, backend: this.#backend.kind, limitMs: leaveLimitMs };
    return withTimeLimit(options, (signal) => this.#backend.leave(entry, signal));
  }

  /** The `enter` may still be in flight and take effect after a leave that found nothing, so that one is retried. */
  async #removeUnacknowledged(entry: EntryKey): Promise<void> {
    try {
      if (await this.#firstAttempt(entry)) return;
    } catch (error) {
      if (!isRetryable(error)) return;
    }
    await this.#retry(entry);
  }

  async #retry(entry: EntryKey): Promise<void> {
    for (let tried = 0; tried < laterAttemptsMax; tried++) {
      if (this.#ending.signal.aborted && tried > 0) return;
      await sleep(this.#clock, firstDelayMs * 2 ** tried, this.#ending.signal);
      try {
        if ((await this.#attempt(entry)) || entry.sequence !== 0n) return;
      } catch (error) {
        if (!isRetryable(error)) return;
      }
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#inFlight.delete(tracked));
    this.#inFlight.add(tracked);
  }
}

function ignore(): void {}

function isRetryable(error: unknown): boolean {
  return error instanceof BackendError && error.backendCode === 'unavailable';
}
