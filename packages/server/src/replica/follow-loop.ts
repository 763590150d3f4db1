import { EngineError } from '../engines/engine-error.ts';
import type { LogEngine } from '../engines/log-engine.ts';
import { yieldToEventLoop } from '../time/yield-to-event-loop.ts';
import type { Clock } from '../time/clock.ts';
import { sleep } from '../time/sleep.ts';
import type { Applier } from './applier.ts';

/** Delay before a retry after the engine failed in a way that may pass. */
const retryDelayMs = 200;

export interface FollowLoopOptions {
  readonly clock: Clock;
  /** An entry of this size was applied. */
  readonly applied: (bytes: number) => void;
  /**
   * The next entries were trimmed from the log: moves the applier to a snapshot. May reject with the engine's error; it
   * is called again if that error may pass.
   */
  readonly trimmed: () => Promise<void>;
  /** The log cannot be followed any more. The message says what an operator can do. */
  readonly failed: (error: Error) => void;
}

/**
 * Reads the entries that other servers append, and applies them from the applier's position. It retries while the
 * engine is unavailable, and continues from the newest snapshot when the next entries were trimmed. An error that
 * cannot pass (another log than the applied one, a command of a newer version) is reported once.
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

  /** Starts at the applier's position. Must not be called while the loop runs. */
  start(): void {
    if (this.#abort !== undefined) throw new Error('the follow loop was started twice');
    const abort = new AbortController();
    this.#abort = abort;
    this.#running = this.#run(abort.signal);
  }

  /** Resolves when this loop applies nothing more. */
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
          await yieldToEventLoop(this.#options.clock);
        }
      } catch (error) {
        if (signal.aborted) return;
        const code = error instanceof EngineError ? error.code : undefined;
        if (code !== 'trimmed' && code !== 'unknown' && code !== 'unavailable') {
          this.#options.failed(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        // A snapshot that is replaced during the read also fails as trimmed. An immediate retry would fail again.
        if (code !== 'trimmed' || isTrimmed) await sleep(this.#options.clock, retryDelayMs, signal);
        isTrimmed ||= code === 'trimmed';
      }
    }
  }
}
