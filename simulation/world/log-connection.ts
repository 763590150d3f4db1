import type { NodeClock } from '@tenure/test-support';
import { EngineError } from '../../packages/server/src/engines/engine-error.ts';
import { nextPosition } from '../../packages/server/src/engines/chain-hash.ts';
import type {
  Acknowledged,
  LogEngine,
  LoggedEntry,
  Position,
  StoredSnapshot,
} from '../../packages/server/src/engines/log-engine.ts';
import type { SimulatedLog } from './simulated-log.ts';

/** A reader that gets no hint looks again after this time, as the engines do. */
const pollIntervalMs = 1_000;

/** One process's connection to the shared log. Requests and answers are slow, and get lost. */
export class LogConnection implements LogEngine {
  readonly name = 'simulated';
  readonly isShared: boolean;
  readonly #log: SimulatedLog;
  readonly #clock: NodeClock;
  readonly #closing = new AbortController();
  /** The newest entry that the leader has sent to this server, with its bytes. */
  #told: LoggedEntry | undefined;
  #look: () => void = () => {};

  constructor(log: SimulatedLog, clock: NodeClock, isShared: boolean) {
    this.isShared = isShared;
    this.#log = log;
    this.#clock = clock;
  }

  append(batch: readonly Uint8Array[], after: Position): Promise<Position> {
    this.#checkOpen();
    const log = this.#log;
    const { random, schedule } = log;
    const beganMs = schedule.nowMs;
    const [bytes] = batch;
    if (bytes === undefined) return this.#request(() => log.check(after));
    const request = { bytes, after, beganMs, writer: this.#clock };
    return new Promise((resolve, reject) => {
      const answer = (delayMs: number, act: () => void): void => this.#clock.deliver(delayMs, act);
      const unknown = (delayMs: number): void =>
        answer(delayMs, () => {
          log.failed(request, true);
          reject(new EngineError('unknown', 'the connection to the log broke'));
        });
      const commit = (settle: (position: Position | undefined) => void): void => {
        try {
          log.commit(request, settle);
        } catch (error) {
          answer(log.answerMs(this.#clock), () => {
            log.failed(request, false);
            reject(error);
          });
        }
      };
      const ignored = (): void => {};
      schedule.in(log.delayMs(), () => {
        if (!log.reaches(this.#clock)) {
          const delayMs = random.between(1, 400);
          if (random.chance(0.5)) unknown(delayMs);
          else answer(delayMs, () => reject(away()));
        } else if (random.chance(log.trouble * 0.08)) {
          const toldMs = random.between(0, 300);
          const kind = random.next();
          const late = (): void => {
            try {
              log.commit(request, ignored);
            } catch {
              // Another server has appended meanwhile.
            }
          };
          if (kind < 0.4) late();
          else if (kind < 0.7) log.leave(this.#clock, toldMs + random.between(0, 1_500), late);
          unknown(toldMs);
        } else {
          commit((position) => {
            if (position === undefined) unknown(log.answerMs(this.#clock));
            else answer(log.answerMs(this.#clock), () => resolve(position));
          });
        }
      });
    });
  }

  /** As on PostgreSQL, a follower trusts the leader: an entry directly after its position needs no read. */
  lookNow(acknowledged?: Acknowledged): void {
    const { position, bytes } = acknowledged ?? {};
    if (position !== undefined && bytes !== undefined) this.#told = { position, bytes };
    this.#look();
  }

  async *follow(from: Position, signal: AbortSignal): AsyncGenerator<readonly LoggedEntry[]> {
    this.#checkOpen();
    const stop = AbortSignal.any([signal, this.#closing.signal]);
    let hinted = true;
    let wake: () => void = () => {};
    const look = (): void => {
      hinted = true;
      wake();
    };
    this.#look = look;
    const leave = this.#log.onGrown(this.#clock, look);
    stop.addEventListener('abort', look);
    let at = from;
    try {
      while (!stop.aborted) {
        hinted = false;
        const entries = this.#toldAfter(at) ?? (await this.#request(() => this.#read(at)));
        if (stop.aborted) break;
        if (entries.length > 0) {
          yield entries;
          at = entries.at(-1)?.position ?? at;
          continue;
        }
        if (hinted) continue;
        const cancel = this.#clock.after(pollIntervalMs, look);
        await new Promise<void>((resolve) => (wake = resolve));
        cancel();
      }
    } finally {
      leave();
    }
    if (!signal.aborted) this.#checkOpen();
  }

  /** One entry, if the leader has sent the next one. */
  #toldAfter(at: Position): readonly LoggedEntry[] | undefined {
    const told = this.#told;
    if (told === undefined || told.position.index > at.index + 1) return undefined;
    this.#told = undefined;
    return nextPosition(at, told.bytes).hash === told.position.hash ? [told] : undefined;
  }

  tail(): Promise<Position> {
    return this.#request(() => this.#log.tail);
  }

  async saveSnapshot(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const kept: Uint8Array[] = [];
    for await (const chunk of chunks) {
      this.#checkOpen();
      kept.push(Buffer.from(chunk));
    }
    await this.#request(() => {
      const known = this.#log.positionAt(position.index);
      const isTrimmed = position.index < this.#log.base.index;
      if (!isTrimmed && known?.hash !== position.hash) throw diverged(position);
      if (!isTrimmed) this.#log.store({ position, chunks: kept });
    });
  }

  loadSnapshot(): Promise<StoredSnapshot | undefined> {
    return this.#request(() => {
      const { snapshot } = this.#log;
      return snapshot && { position: snapshot.position, chunks: this.#chunksOf(snapshot.chunks) };
    });
  }

  trim(index: number): Promise<void> {
    return this.#request(() => this.#log.trim(index));
  }

  sizeBytes(): number {
    return 0;
  }

  close(): Promise<void> {
    this.#closing.abort();
    return Promise.resolve();
  }

  async *#chunksOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) yield await this.#request(() => chunk);
  }

  #read(from: Position): readonly LoggedEntry[] {
    const log = this.#log;
    log.decide(this.#clock);
    if (from.index < log.base.index) throw new EngineError('trimmed', `entry ${from.index + 1} was removed`);
    if (log.positionAt(from.index)?.hash !== from.hash) throw diverged(from);
    return log.after(from.index);
  }

  /** One request to the engine and its answer. Rejects with `unavailable` if the engine is away at that moment. */
  #request<T>(act: () => T): Promise<T> {
    this.#checkOpen();
    const log = this.#log;
    return new Promise((resolve, reject) => {
      log.schedule.in(log.delayMs(), () => {
        let outcome: () => void;
        try {
          if (!log.reaches(this.#clock)) throw away();
          const value = act();
          outcome = () => resolve(value);
        } catch (error) {
          outcome = () => reject(error);
        }
        this.#clock.deliver(log.answerMs(this.#clock), outcome);
      });
    });
  }

  #checkOpen(): void {
    if (this.#closing.signal.aborted) throw new EngineError('closed', 'the log is closed');
  }
}

function away(): EngineError {
  return new EngineError('unavailable', 'the log cannot be reached');
}

function diverged({ index }: Position): EngineError {
  return new EngineError('diverged', `the log does not hold the entry that was applied up to ${index}`);
}
