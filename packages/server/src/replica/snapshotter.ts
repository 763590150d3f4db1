import type { StateMachine } from '@tenure/core';
import { EngineError, type EngineErrorCode } from '../engines/engine-error.ts';
import type { LogEngine, Position } from '../engines/log-engine.ts';
import { breathe } from '../time/breathe.ts';
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
  /** Where the applied state stands in the log. */
  readonly position: () => Position;
  /**
   * On a log that other servers follow: up to where those that are linked have all applied it; Infinity while there
   * are none.
   */
  readonly slowestFollower?: () => number;
  readonly saved: (durationMs: number) => void;
  /**
   * The engine could not take a snapshot now, and lost nothing by it: the next one is due as if this one had been
   * saved.
   */
  readonly putOff: (reason: Error) => void;
  readonly failed: (error: Error) => void;
  readonly clock: Clock;
  readonly entriesSinceSnapshot: number;
}

/**
 * Without a snapshot the log only grows; what was appended is as safe as before. It is trimmed where another server has
 * begun to lead, and to write snapshots, before this one was done with its own.
 */
const harmlessCodes: ReadonlySet<EngineErrorCode> = new Set(['full', 'unavailable', 'unknown', 'conflict', 'trimmed']);

/**
 * How much of the log stays for a slow server: what lies behind the snapshot that is so many before the newest, and
 * never more than as many entries as so many snapshots may be apart. A server that is slower loads a snapshot.
 */
export const maxKeptSnapshots = 10;

/**
 * Writes a snapshot of the state when the log behind the last one has grown enough, and lets the engine forget what
 * the snapshot covers. Entries go on being applied meanwhile: the snapshot is of the moment at which it began.
 */
export class Snapshotter {
  readonly #options: SnapshotterOptions;
  #entries: number;
  #bytes = 0;
  /** Where the last snapshots of this process stand, the oldest first. */
  readonly #savedAt: number[] = [];
  #running: Promise<void> | undefined;
  #stopping = false;

  constructor(options: SnapshotterOptions) {
    this.#options = options;
    this.#entries = options.entriesSinceSnapshot;
  }

  /**
   * An entry of `bytes` that another server appended was applied: it counts, but the snapshot is the leader's to
   * write.
   */
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

  /** No snapshot begins from here on; resolves when the one under way has come to its end or given up. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
  }

  async #save(): Promise<void> {
    await breathe(this.#options.clock);
    if (this.#stopping) return;
    const { engine, state, position, saved, clock } = this.#options;
    const beganMs = clock.monotonicMs();
    const at = position();
    this.#entries = 0;
    this.#bytes = 0;
    // The writer holds the state of this moment from here on, however long the engine takes to pull its first chunk.
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
   * On a log that others follow, what lies between the last two snapshots stays, and what a server that is linked has
   * not applied, up to a limit: a server that was away for a while goes on where it was.
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
      if (this.#stopping) throw new Error('the server is stopping; the snapshot is given up');
      yield step.value;
      await breathe(this.#options.clock);
    }
  }
}
