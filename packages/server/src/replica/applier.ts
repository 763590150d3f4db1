import type { Applied, Command, CommandResponse, Entry, StateMachine } from '@tenure/core';
import type { LoggedEntry, Position } from '../engines/log-engine.ts';
import type { Clock } from '../time/clock.ts';
import { decodeCommand } from './command-codec.ts';
import { decodeEntry, type EncodedCommand, type EntryHeaders, type Origin } from './entry-codec.ts';

export interface ApplierOptions {
  readonly state: StateMachine;
  readonly position: Position;
  /** Called after each entry, before any waiter is answered. The apply began at `beganMs`. */
  readonly onApplied: (entry: Entry, applied: Applied, beganMs: number) => void;
  /** Whether a client of this server waits for the response to the command with this origin. */
  readonly isAwaited: (origin: Origin) => boolean;
  /** A command with an origin was applied. */
  readonly onOutcome: (origin: Origin, response: CommandResponse) => void;
  readonly clock: Clock;
  readonly measured: (durationMs: number) => void;
}

/** A caller that waits until an index is applied. */
interface Waiter {
  readonly index: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Applies the log to the state, entry by entry, and answers the waiters for indexes and outcomes. The entries may come
 * from any server.
 */
export class Applier {
  readonly state: StateMachine;
  readonly #options: ApplierOptions;
  #position: Position;
  #waiters: Waiter[] = [];
  #stopped: Error | undefined;

  constructor(options: ApplierOptions) {
    this.#options = options;
    this.state = options.state;
    this.#position = options.position;
  }

  get position(): Position {
    return this.#position;
  }

  /**
   * Applies an entry as read from the engine. Throws if this version does not know every command in it; then nothing
   * was applied.
   */
  applyLogged({ position, bytes }: LoggedEntry): void {
    const { headers, commands } = decodeEntry(bytes);
    this.apply(position, headers, commands, commands.map(decodeCommand));
  }

  apply(
    position: Position,
    headers: EntryHeaders,
    encoded: readonly EncodedCommand[],
    commands: readonly Command[],
  ): readonly CommandResponse[] {
    const { clock, isAwaited, onApplied, onOutcome, measured } = this.#options;
    const beganMs = clock.monotonicMs();
    const entry: Entry = { index: position.index, epoch: headers.epoch, timeMs: headers.timeMs, commands };
    const applied = this.state.apply(entry, (at) => {
      const origin = encoded[at]?.origin;
      return origin === undefined || isAwaited(origin);
    });
    this.#position = position;
    onApplied(entry, applied, beganMs);
    for (let at = 0; at < encoded.length; at += 1) {
      const origin = encoded[at]?.origin;
      if (origin !== undefined) onOutcome(origin, applied.responses[at] as CommandResponse);
    }
    this.#wake();
    measured(clock.monotonicMs() - beganMs);
    return applied.responses;
  }

  /**
   * The state was replaced by a snapshot at `position`. The outcomes before it are not reported. Waiters for an index
   * at or before it are answered.
   */
  skipTo(position: Position): void {
    this.#position = position;
    this.#wake();
  }

  /** Resolves when the entry at `index` has been applied here. */
  whenApplied(index: number): Promise<void> {
    if (this.#position.index >= index) return Promise.resolve();
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => this.#waiters.push({ index, resolve, reject }));
  }

  /** Nothing will be applied any more. */
  stop(reason: Error): void {
    this.#stopped = reason;
    for (const { reject } of this.#waiters.splice(0)) reject(reason);
  }

  #wake(): void {
    if (this.#waiters.length === 0) return;
    const { index } = this.#position;
    const left: Waiter[] = [];
    for (const waiter of this.#waiters) {
      if (waiter.index <= index) waiter.resolve();
      else left.push(waiter);
    }
    this.#waiters = left;
  }
}
