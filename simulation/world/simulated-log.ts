import type { NodeClock, Schedule, SeededRandom } from '@tenure/test-support';
import { logStart, nextPosition } from '../../packages/server/src/engines/chain-hash.ts';
import { EngineError } from '../../packages/server/src/engines/engine-error.ts';
import type { LoggedEntry, Position } from '../../packages/server/src/engines/log-engine.ts';

export interface DurableEntry extends LoggedEntry {
  /** When the append began, in true time. */
  readonly beganMs: number;
  readonly writer: NodeClock;
}

export interface LogSnapshot {
  readonly position: Position;
  readonly chunks: readonly Uint8Array[];
}

export interface SimulatedLogOptions {
  readonly schedule: Schedule;
  readonly random: SeededRandom;
  /** Called for each entry, in order, when it has become durable and before any server or client knows. */
  readonly onDurable: (entry: DurableEntry) => void;
  /** Called when a writer is told that its append was refused, or that the outcome is unknown. */
  readonly onFailed: (bytes: Uint8Array, writer: NodeClock, isUnknown: boolean) => void;
}

/** An append whose connection broke. The engine may still carry it out until its writer reads the log. */
interface Straggler {
  isDecided: boolean;
}

export interface AppendRequest {
  readonly bytes: Uint8Array;
  readonly after: Position;
  readonly beganMs: number;
  readonly writer: NodeClock;
}

/** An append that is committed here and waits for the standby. */
interface Commit {
  readonly entry: DurableEntry;
  /** Called with the entry's position when it is durable, or without when it is lost. */
  readonly settle: (position: Position | undefined) => void;
}

/**
 * The storage of a shared log, as PostgreSQL or etcd is one: it outlives its clients, and appends on a condition. A
 * commit becomes durable at once, or when the synchronous standby is back; if the standby takes over meanwhile, the
 * commits that it does not have are lost.
 */
export class SimulatedLog {
  /** No server reaches the engine. */
  isAway = false;
  /** These servers do not reach it, while others do. */
  readonly cutOff = new Set<NodeClock>();
  /** The answers to these servers are late by so much, while the requests are carried out in time. */
  readonly slowMs = new Map<NodeClock, number>();
  /** Between 0 and 1: the rate of unusual events. */
  trouble = 0;
  /** Hints that the log has grown are sometimes late or lost. */
  isRough = true;
  readonly schedule: Schedule;
  readonly random: SeededRandom;
  readonly #options: SimulatedLogOptions;
  readonly #readers = new Set<() => void>();
  readonly #stragglers = new Map<NodeClock, Straggler>();
  /** The durable entries after #base. */
  #entries: DurableEntry[] = [];
  #base: Position = logStart;
  #waiting: Commit[] = [];
  #isStandbyAway = false;
  #snapshot: LogSnapshot | undefined;

  constructor(options: SimulatedLogOptions) {
    this.#options = options;
    this.schedule = options.schedule;
    this.random = options.random;
  }

  /** The end of the durable log. */
  get tail(): Position {
    return this.#entries.at(-1)?.position ?? this.#base;
  }

  get base(): Position {
    return this.#base;
  }

  get snapshot(): LogSnapshot | undefined {
    return this.#snapshot;
  }

  /** The entries after `index`, a few at a time. */
  after(index: number): readonly DurableEntry[] {
    const from = index - this.#base.index;
    return this.#entries.slice(from, from + 64);
  }

  positionAt(index: number): Position | undefined {
    if (index === this.#base.index) return this.#base;
    return this.#entries[index - this.#base.index - 1]?.position;
  }

  reaches(client: NodeClock): boolean {
    return !this.isAway && !this.cutOff.has(client);
  }

  /** The writer is told that its append failed. */
  failed({ bytes, writer }: AppendRequest, isUnknown: boolean): void {
    this.#options.onFailed(bytes, writer, isUnknown);
  }

  /** The writer reads the log: an append of it that has not been carried out never will be. */
  decide(writer: NodeClock): void {
    const straggler = this.#stragglers.get(writer);
    if (straggler !== undefined) straggler.isDecided = true;
  }

  /** Carries the append out unless the writer reads the log before. */
  leave(writer: NodeClock, afterMs: number, commit: () => void): void {
    const straggler = { isDecided: false };
    this.#stragglers.set(writer, straggler);
    this.schedule.in(afterMs, () => {
      if (!straggler.isDecided) commit();
      straggler.isDecided = true;
    });
  }

  /** Commits, or throws `conflict`. `settle` is called now or when the standby is back. */
  commit({ bytes, after, beganMs, writer }: AppendRequest, settle: Commit['settle']): void {
    const end = this.#waiting.at(-1)?.entry.position ?? this.tail;
    if (end.index !== after.index || end.hash !== after.hash) {
      throw new EngineError('conflict', `the log ends at ${end.index}, not at ${after.index}`, { tail: this.tail });
    }
    const entry = { position: nextPosition(after, bytes), bytes, beganMs, writer };
    if (this.#isStandbyAway) this.#waiting.push({ entry, settle });
    else this.#makeDurable({ entry, settle });
  }

  /** The position, if an append of nothing would succeed there. */
  check(after: Position): Position {
    const { tail } = this;
    if (tail.index === after.index && tail.hash === after.hash) return tail;
    throw new EngineError('conflict', `the log ends at ${tail.index}, not at ${after.index}`, { tail });
  }

  store(snapshot: LogSnapshot): void {
    if (this.#snapshot === undefined || this.#snapshot.position.index <= snapshot.position.index) {
      this.#snapshot = snapshot;
    }
  }

  trim(index: number): void {
    const upTo = Math.min(index, this.#snapshot?.position.index ?? 0);
    const gone = this.#entries.splice(0, Math.max(0, upTo - this.#base.index));
    this.#base = gone.at(-1)?.position ?? this.#base;
  }

  /** From now on commits wait for the standby. */
  loseStandby(): void {
    this.#isStandbyAway = true;
  }

  /** The standby is back with everything, or it has taken over without what waits for it. */
  regainStandby(how: 'back' | 'promoted'): void {
    this.#isStandbyAway = false;
    for (const commit of this.#waiting.splice(0)) {
      if (how === 'back') this.#makeDurable(commit);
      else commit.settle(undefined);
    }
  }

  /** Calls `read` after each new durable entry, after a delay; a hint may be lost. Returns a function that stops it. */
  onGrown(reader: NodeClock, read: () => void): () => void {
    const notice = (): void => reader.deliver(this.#noticeMs(), read);
    this.#readers.add(notice);
    return () => this.#readers.delete(notice);
  }

  /** How long an answer to that server takes. */
  answerMs(client: NodeClock): number {
    return this.delayMs() + (this.slowMs.get(client) ?? 0);
  }

  delayMs(): number {
    const { random } = this;
    if (random.chance(this.trouble * 0.02)) return random.between(0, 3_000);
    return random.chance(this.trouble * 0.1) ? random.between(5, 400) : random.between(0.3, 4);
  }

  #makeDurable({ entry, settle }: Commit): void {
    this.#entries.push(entry);
    this.schedule.trace(Number.parseInt(entry.position.hash.slice(0, 8), 16));
    this.#options.onDurable(entry);
    settle(entry.position);
    for (const notice of this.#readers) notice();
  }

  #noticeMs(): number {
    return this.isRough && this.random.chance(0.02) ? this.random.between(10, 800) : this.random.between(0.2, 5);
  }
}
