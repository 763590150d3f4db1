import type { Entry, LeaseBackend } from '../backend/lease-backend.ts';
import type { Clock } from '../time/clock.ts';
import type { Signal } from '../time/signal.ts';
import type { QueueSnapshot, QueueSubscription, SharedQueueReads } from './shared-queue-reads.ts';

/** The queue is read this long after an entry should have expired, so that the backend sees it as expired. */
const afterExpiryMs = 5;
/** Until the next read when an entry is still listed after its expiry. */
const overdueMs = 50;

interface QueueWatcherOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly queueReads: SharedQueueReads;
  readonly queue: string;
}

/** Tells when to read a queue again: on a hint of the backend, or after a time. */
export class QueueWatcher {
  readonly #clock: Clock;
  readonly #pollIntervalMs: number;
  readonly #subscription: QueueSubscription;
  #isDue = false;
  #resolve: (() => void) | undefined;

  constructor(options: QueueWatcherOptions) {
    this.#clock = options.clock;
    this.#pollIntervalMs = options.backend.pollIntervalMs;
    this.#subscription = options.queueReads.subscribe(options.queue, () => this.wake());
  }

  /** The queue as it is now. Rejects with a BackendError. */
  async read(signal: Signal): Promise<QueueSnapshot> {
    return await this.#subscription.read(signal);
  }

  wake(): void {
    this.#isDue = true;
    this.#resolve?.();
  }

  /**
   * Resolves when the queue should be read again, at once if there was a hint since the last time, so a hint that comes
   * during a read is not lost. The caller passes the entries whose end would matter.
   */
  async nextRead(relevant: readonly Entry[]): Promise<void> {
    await this.pause(Math.min(this.#pollIntervalMs, ...relevant.map(delayMs)));
  }

  /** The same after a read that failed. */
  async pause(withinMs: number): Promise<void> {
    if (!this.#isDue) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.setTimer(withinMs, resolve);
        this.#resolve = () => {
          timer.cancel();
          resolve();
        };
      });
    }
    this.#resolve = undefined;
    this.#isDue = false;
  }

  close(): void {
    this.#subscription.close();
    this.wake();
  }
}

function delayMs({ expiresInMs }: Entry): number {
  if (expiresInMs === undefined) return Infinity;
  return expiresInMs > 0 ? expiresInMs + afterExpiryMs : overdueMs;
}
