import type { StateMachine } from '@tenure/core';
import { EngineError, type EngineErrorCode } from '../engines/engine-error.ts';
import type { LogEngine, Position } from '../engines/log-engine.ts';
import { yieldToEventLoop } from '../time/yield-to-event-loop.ts';
import type { Clock } from '../time/clock.ts';

export interface SnapshotThresholds {
  /** A snapshot is due after this many entries, or ... */
  readonly entries: number;
  /** ... after this many bytes of log. */
  readonly bytes: number;
}

export interface SnapshotterOptions {
  readonly engine: LogEngine;
  readonly state: StateMachine;
  readonly thresholds: SnapshotThresholds;
  /** The position of the applied state in the log. */
  readonly position: () => Position;
  /** On a shared log: the index up to which all linked followers have applied it; Infinity without followers. */
  readonly slowestFollower?: () => number;
  readonly saved: (durationMs: number) => void;
  /** The engine could not take a snapshot now, and lost nothing. The next one is due as if this one had been saved. */
  readonly putOff: (reason: Error) => void;
  readonly failed: (error: Error) => void;
  readonly clock: Clock;
  readonly entriesSinceSnapshot: number;
}

/**
 * Errors without a loss: without a snapshot the log only grows. It is already trimmed if another server began to lead
 * and to write snapshots before this one finished its own.
 */
const harmlessCodes: ReadonlySet<EngineErrorCode> = new Set(['full', 'unavailable', 'unknown', 'conflict', 'trimmed']);

/**
 * How much of the log is kept for a slow follower: the entries after the snapshot this many before the newest, and at
 * most as many entries as this many snapshots are apart. A slower follower loads a snapshot.
 */
export const maxKeptSnapshots = 10;

/**
 * Writes a snapshot of the state when the log after the last one has grown enough, and then lets the engine trim the
 * log. Entries are applied meanwhile: the snapshot holds the state of the moment at which it began.
 */
export class Snapshotter {
  readonly #options: SnapshotterOptions;
  #entries: number;
  #bytes = 0;
  /** The indexes of this process's last snapshots, oldest first. */
  readonly #savedAt: number[] = [];
  #running: Promise<void> | undefined;
  #stopping = false;

  constructor(options: SnapshotterOptions) {
    this.#options = options;
    this.#entries = options.entriesSinceSnapshot;
  }

  /** An entry of `bytes` from another server was applied. It counts here too, but only the leader writes snapshots. */
  followed(bytes: number): void {
    this.#entries += 1;
    this.#bytes += bytes;
  }

  /** The state was replaced by that of the newest snapshot. */
  loaded(): void {
    this.#entries = 0;
    this.#bytes = 0;
  }

  /** One entry of `bytes` was appended; it will be applied before the event loop turns. */
  appended(bytes: number): void {
    this.#entries += 1;
    this.#bytes += bytes;
    const { entries, bytes: maxBytes } = this.#options.thresholds;
    if (this.#entries < entries && this.#bytes < maxBytes) return;
    if (this.#running !== undefined || this.#stopping) return;
    this.#running = this.#save()
      .catch((error: unknown) => {
        if (error instanceof EngineError && harmlessCodes.has(error.code)) this.#options.putOff(error);
        else this.#options.failed(error instanceof Error ? error : new Error(String(error)));
      })
      .finally(() => (this.#running = undefined));
  }

  /** Begins no further snapshot. Resolves when the running one has finished or was aborted. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
  }

  async #save(): Promise<void> {
    await yieldToEventLoop(this.#options.clock);
    if (this.#stopping) return;
    const { engine, state, position, saved, clock } = this.#options;
    const beganMs = clock.monotonicMs();
    const at = position();
    this.#entries = 0;
    this.#bytes = 0;
    // The writer holds the state of this moment, however late the engine reads the first chunk.
    const steps = state.snapshotForEngine();
    try {
      await engine.saveSnapshot(at, this.#chunks(steps));
    } catch (error) {
      if (this.#stopping) return;
      throw error;
    } finally {
      steps.return();
    }
    await this.#trim(at.index);
    saved(clock.monotonicMs() - beganMs);
  }

  /**
   * On a shared log, the entries between the last two snapshots are kept, and those that a linked follower has not
   * applied, up to a limit. A server that was away for a short time then continues without a snapshot.
   */
  async #trim(index: number): Promise<void> {
    const { engine, slowestFollower, thresholds } = this.#options;
    if (slowestFollower === undefined) return engine.trim(index);
    const wanted = Math.min(this.#savedAt.at(-1) ?? 0, slowestFollower());
    this.#savedAt.push(index);
    const oldest = this.#savedAt.length > maxKeptSnapshots ? (this.#savedAt.shift() ?? 0) : 0;
    const upTo = Math.max(wanted, oldest, index - maxKeptSnapshots * thresholds.entries);
    if (upTo > 0) await engine.trim(upTo);
  }

  async *#chunks(steps: Iterator<Uint8Array>): AsyncGenerator<Uint8Array> {
    for (let step = steps.next(); step.done !== true; step = steps.next()) {
      if (this.#stopping) throw new Error('the server is stopping; the snapshot is aborted');
      yield step.value;
      await yieldToEventLoop(this.#options.clock);
    }
  }
}
