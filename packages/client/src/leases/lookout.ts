import type { Entry, LeaseBackend } from '../backend/lease-backend.ts';
import type { Clock } from '../time/clock.ts';
import type { Signal } from '../time/signal.ts';
import type { LineView, LineViews, Look } from './line-views.ts';

/** When an entry should have ended by what the backend told, it is looked at a little later than that. */
const afterExpiryMs = 5;
/** An entry that is still listed after its time: the backend has not come to remove it. */
const overdueMs = 50;

interface LookoutOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly views: LineViews;
  readonly line: string;
}

/** Tells when to look at a line again: on a hint of the backend, or after a time. */
export class Lookout {
  readonly #clock: Clock;
  readonly #pollIntervalMs: number;
  readonly #view: LineView;
  #isDue = false;
  #resolve: (() => void) | undefined;

  constructor(options: LookoutOptions) {
    this.#clock = options.clock;
    this.#pollIntervalMs = options.backend.pollIntervalMs;
    this.#view = options.views.open(options.line, () => this.wake());
  }

  /** The line as it is now, or a BackendError. */
  async look(signal: Signal): Promise<Look> {
    return await this.#view.look(signal);
  }

  wake(): void {
    this.#isDue = true;
    this.#resolve?.();
  }

  /**
   * Resolves when the line should be looked at again, at once if there was a hint since the last time; so a hint that
   * comes while the line is being read is not lost. Those entries of the line are given whose end would matter.
   */
  async next(concerned: readonly Entry[]): Promise<void> {
    await this.pause(Math.min(this.#pollIntervalMs, ...concerned.map(delayMs)));
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
    this.#view.close();
    this.wake();
  }
}

function delayMs({ expiresInMs }: Entry): number {
  if (expiresInMs === undefined) return Infinity;
  return expiresInMs > 0 ? expiresInMs + afterExpiryMs : overdueMs;
}
