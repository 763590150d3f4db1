import type { Applied, Command, CommandResponse, Entry, StateMachine } from '@tenure/core';
import type { LogEngine, Position } from '../engines/log-engine.ts';
import { decodeCommand } from './command-codec.ts';
import type { EntryHeaders } from './entry-codec.ts';
import { recover } from './recovery.ts';
import { Scrubber } from './scrubber.ts';
import { Sequencer } from './sequencer.ts';
import { Snapshotter, type SnapshotThresholds } from './snapshotter.ts';

export interface ReplicaMetrics {
  appended(append: { entries: number; commands: number; bytes: number; durationMs: number }): void;
  applied(durationMs: number): void;
  snapshotSaved(durationMs: number): void;
}

export interface ReplicaOptions {
  readonly engine: LogEngine;
  readonly snapshots: SnapshotThresholds;
  readonly metrics: ReplicaMetrics;
  readonly monotonicMs: () => number;
  /** Cluster time for an entry whose append begins now. */
  readonly stampMs: () => number;
  /** Called after each entry, before the next is applied and before its proposals are answered. */
  readonly onApplied: (entry: Entry, applied: Applied, beganMs: number) => void;
  /** A snapshot was not written, and the log was not shortened; it is tried again when it is due next. */
  readonly onSnapshotPutOff: (reason: Error) => void;
  /** The server must stop: the message says what an operator can do. */
  readonly onFailed: (error: Error) => void;
}

/**
 * The replicated state on this server: recovers it from the engine, and carries proposals through
 * batch -> append -> apply -> answer. What it answers is durable; what it applied is what the log says, in order.
 */
export class Replica {
  readonly state: StateMachine;
  readonly #options: ReplicaOptions;
  readonly #sequencer: Sequencer;
  readonly #snapshotter: Snapshotter;
  readonly #scrubber: Scrubber;

  private constructor(options: ReplicaOptions, state: StateMachine, position: Position, replayed: number) {
    this.#options = options;
    this.state = state;
    this.#scrubber = new Scrubber(state);
    this.#sequencer = new Sequencer({
      engine: options.engine,
      position,
      headers: (first) => this.#headers(first),
      rowsOf: (command, atMost) => state.countRows(command, atMost),
      apply: (at, headers, _encoded, commands) => this.#apply(at, headers, commands),
      appended: (commands, bytes, beganMs) => this.#appended(commands, bytes, options.monotonicMs() - beganMs),
      failed: options.onFailed,
      monotonicMs: options.monotonicMs,
    });
    this.#snapshotter = new Snapshotter({
      engine: options.engine,
      state,
      thresholds: options.snapshots,
      position: () => this.#sequencer.position,
      saved: (durationMs) => options.metrics.snapshotSaved(durationMs),
      putOff: options.onSnapshotPutOff,
      failed: options.onFailed,
      monotonicMs: options.monotonicMs,
      entriesSinceSnapshot: replayed,
    });
  }

  /** Loads the newest snapshot and the log behind it. Rejects with EngineError when the log cannot be trusted. */
  static async open(options: ReplicaOptions): Promise<Replica> {
    const { state, position, replayed } = await recover(options.engine, decodeCommand);
    const replica = new Replica(options, state, position, replayed);
    replica.#scrubber.wake();
    return replica;
  }

  /** Monotonic time at which the last append began. */
  get lastAppendBeganMs(): number {
    return this.#sequencer.lastAppendBeganMs;
  }

  get position(): Position {
    return this.#sequencer.position;
  }

  /** Resolves when the log has answered what is out now; see Sequencer.appendReturned. */
  appendReturned(): Promise<void> {
    return this.#sequencer.appendReturned();
  }

  /** Nobody else appends to this log. */
  linearize(): undefined {
    return undefined;
  }

  /** Resolves when the command is durable and applied; see Sequencer.propose. */
  propose(command: Command, raw?: Buffer): Promise<CommandResponse> {
    return this.#sequencer.propose(command, raw);
  }

  /** Answers what was accepted, then stops. The engine stays open: who opened it closes it. */
  async stop(): Promise<void> {
    await this.#sequencer.stop();
    this.#scrubber.stop();
    await this.#snapshotter.stop();
  }

  #headers(first: Command | undefined): EntryHeaders {
    const epoch = first?.kind === 'claim' ? first.epoch : this.state.epoch;
    return { epoch, timeMs: this.#options.stampMs() };
  }

  #apply(position: Position, headers: EntryHeaders, commands: readonly Command[]): readonly CommandResponse[] {
    const { monotonicMs, metrics, onApplied } = this.#options;
    const beganMs = monotonicMs();
    const entry: Entry = { index: position.index, epoch: headers.epoch, timeMs: headers.timeMs, commands };
    const applied = this.state.apply(entry);
    onApplied(entry, applied, beganMs);
    if (commands.some(({ kind }) => kind === 'compact')) this.#scrubber.wake();
    metrics.applied(monotonicMs() - beganMs);
    return applied.responses;
  }

  #appended(commands: number, bytes: number, durationMs: number): void {
    this.#options.metrics.appended({ entries: 1, commands, bytes, durationMs });
    this.#snapshotter.appended(bytes);
  }
}
