import { EngineError } from '../engines/engine-error.ts';
import type { LogEngine } from '../engines/log-engine.ts';
import { breathe } from '../time/breathe.ts';
import type { Clock } from '../time/clock.ts';
import { sleep } from '../time/sleep.ts';
import type { Applier } from './applier.ts';

/** How long the loop waits before it tries again after the engine failed in a way that may pass. */
const retryDelayMs = 200;

export interface FollowLoopOptions {
  readonly clock: Clock;
  /** An entry of so many bytes was applied. */
  readonly applied: (bytes: number) => void;
  /**
   * What comes next in the log is gone: moves the applier on to a snapshot. May reject as an engine does; then it is
   * called again where that may pass.
   */
  readonly trimmed: () => Promise<void>;
  /** The log cannot be followed any more: the message says what an operator can do. */
  readonly failed: (error: Error) => void;
}

/**
 * Reads what others append and applies it, from where the applier stands. An engine that is away is waited for; where
 * the log has been trimmed away in front of it, it goes on behind the newest snapshot. What cannot pass (a log that is
 * not the one that was applied, a command of a newer version) is told, once.
 */
export class FollowLoop {
  readonly #engine: LogEngine;
  readonly #applier: Applier;
  readonly #options: FollowLoopOptions;
  #abort: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(engine: LogEngine, applier: Applier, options: FollowLoopOptions) {
    this.#engine = engine;
    this.#applier = applier;
    this.#options = options;
  }

  /** Begins at the applier's position. Must not be called while the loop runs. */
  start(): void {
    if (this.#abort !== undefined) throw new Error('the follow loop was started twice');
    const abort = new AbortController();
    this.#abort = abort;
    this.#running = this.#run(abort.signal);
  }

  /** Resolves when nothing more will be applied by this loop. */
  async stop(): Promise<void> {
    this.#abort?.abort();
    await this.#running;
    this.#abort = undefined;
  }

  async #run(signal: AbortSignal): Promise<void> {
    let isTrimmed = false;
    while (!signal.aborted) {
      try {
        if (isTrimmed) await this.#options.trimmed();
        isTrimmed = false;
        for await (const entries of this.#engine.follow(this.#applier.position, signal)) {
          for (const entry of entries) {
            if (signal.aborted) return;
            this.#applier.applyLogged(entry);
            this.#options.applied(entry.bytes.length);
          }
          await breathe(this.#options.clock);
        }
      } catch (error) {
        if (signal.aborted) return;
        const code = error instanceof EngineError ? error.code : undefined;
        if (code !== 'trimmed' && code !== 'unknown' && code !== 'unavailable') {
          this.#options.failed(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        // A snapshot that was replaced while it was read is told as trimmed too: it is not tried again at once.
        if (code !== 'trimmed' || isTrimmed) await sleep(this.#options.clock, retryDelayMs, signal);
        isTrimmed ||= code === 'trimmed';
      }
    }
  }
}
