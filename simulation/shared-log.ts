import type { NodeClock, Schedule, SeededRandom } from '@tenure/test-support';
import type { Command } from '@tenure/core';
import type { Origin } from '../packages/server/src/replica/entry-codec.ts';

export interface ProposedCommand {
  readonly command: Command;
  readonly origin: Origin | undefined;
}

export interface LogEntry {
  readonly index: number;
  readonly epoch: number;
  readonly timeMs: number;
  readonly proposed: readonly ProposedCommand[];
}

export type AppendOutcome = 'ok' | 'conflict' | 'unknown' | 'unavailable';

/** An append whose connection broke, and which the engine may still carry out until its writer reads the log. */
interface Straggler {
  decided: boolean;
}

/**
 * An engine that many servers append to, conditionally. Trouble is by chance: slow requests, slow replies, connections
 * cut before or after the commit, and commits that come after the writer was told of the cut, though never after an
 * answered read of that writer.
 */
export class SharedLog {
  readonly entries: LogEntry[] = [];
  /** Now and then a message between servers, or a notification of the engine, takes long. */
  rough = true;
  /** Nobody reaches the engine. */
  away = false;
  /** These do not reach it, while others do. */
  readonly cutOff = new Set<NodeClock>();
  /** Between 0 and 1: how often something is out of the ordinary. */
  trouble = 0;
  readonly #schedule: Schedule;
  readonly #random: SeededRandom;
  readonly #committed: (entry: LogEntry, beganMs: number) => void;
  readonly #beganMs = new WeakMap<LogEntry, number>();
  readonly #stragglers = new Map<NodeClock, Straggler>();

  constructor(schedule: Schedule, random: SeededRandom, committed: (entry: LogEntry, beganMs: number) => void) {
    this.#schedule = schedule;
    this.#random = random;
    this.#committed = committed;
  }

  /** The append goes on whatever becomes of the writer. */
  append(writer: NodeClock, entry: LogEntry): Promise<AppendOutcome> {
    this.#beganMs.set(entry, this.#schedule.nowMs);
    return new Promise((resolve) => {
      const answer = (outcome: AppendOutcome, delayMs: number): void => writer.deliver(delayMs, () => resolve(outcome));
      this.#schedule.in(this.#delayMs(), () => {
        if (this.#isAway(writer))
          answer(this.#random.chance(0.5) ? 'unavailable' : 'unknown', this.#random.between(1, 400));
        else if (this.#random.chance(this.trouble * 0.08)) this.#cut(writer, entry, answer);
        else answer(this.#commit(entry) ? 'ok' : 'conflict', this.#delayMs());
      });
    });
  }

  /** The entries behind `index` reach the reader after a while, once the engine can be asked. */
  read(reader: NodeClock, receive: (length: number) => void): void {
    reader.deliver(this.#delayMs(), () => {
      if (this.#isAway(reader)) {
        reader.after(this.#random.between(50, 200), () => this.read(reader, receive));
        return;
      }
      const straggler = this.#stragglers.get(reader);
      if (straggler !== undefined) straggler.decided = true;
      receive(this.entries.length);
    });
  }

  #isAway(from: NodeClock): boolean {
    return this.away || this.cutOff.has(from);
  }

  #cut(writer: NodeClock, entry: LogEntry, answer: (outcome: AppendOutcome, delayMs: number) => void): void {
    const kind = this.#random.next();
    const toldMs = this.#random.between(0, 300);
    if (kind < 0.4) this.#commit(entry);
    else if (kind < 0.7) {
      const straggler = { decided: false };
      this.#stragglers.set(writer, straggler);
      this.#schedule.in(toldMs + this.#random.between(0, 1500), () => {
        if (!straggler.decided) this.#commit(entry);
        straggler.decided = true;
      });
    }
    answer('unknown', toldMs);
  }

  #commit(entry: LogEntry): boolean {
    if (this.entries.length !== entry.index - 1) return false;
    this.entries.push(entry);
    this.#schedule.trace(entry.index ^ Math.floor(entry.timeMs) ^ (entry.epoch << 16));
    this.#committed(entry, this.#beganMs.get(entry) ?? this.#schedule.nowMs);
    return true;
  }

  #delayMs(): number {
    if (this.#random.chance(this.trouble * 0.02)) return this.#random.between(0, 3000);
    return this.#random.chance(this.trouble * 0.1) ? this.#random.between(5, 400) : this.#random.between(0.3, 4);
  }
}
