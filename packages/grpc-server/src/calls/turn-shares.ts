import type { Connection, TurnShare } from './connection.ts';
import type { TransportLimits } from '../limits/transport-limits.ts';

/** Connections that wait go on for this long in one turn; the last one is finished. */
const resumeSliceMs = 5;

/**
 * What one turn of the event loop takes from clients: a limited number of new calls for each connection, and in total,
 * a limited number of bytes for each connection, and a limited time in total. The frames beyond it are left unread
 * until the next turns, in which connections take turns. So a flood of one client delays the others by one share, and
 * is not stored.
 */
export class TurnShares {
  readonly #limits: TransportLimits;
  /** Connections that are not read, in the order in which they were stopped. */
  readonly #stopped = new Set<Connection>();
  #turnNumber = 0;
  #totalStarted = 0;
  #turnIsDue = false;
  #turnBeganMs = 0;

  constructor(limits: TransportLimits) {
    this.#limits = limits;
  }

  /** A call has begun. False when the connection has to wait before the next one. */
  mayOpen(connection: Connection): boolean {
    const turn = this.#turnOf(connection);
    turn.started += 1;
    this.#totalStarted += 1;
    this.#turnSoon();
    const { maxStreamStartsPerTurn, maxTotalStreamStartsPerTurn } = this.#limits;
    const hasShare = turn.started < maxStreamStartsPerTurn && this.#totalStarted < maxTotalStreamStartsPerTurn;
    if (!hasShare) this.#stopped.add(connection);
    return hasShare;
  }

  /** Bytes have been read. False when the connection has to wait before the next ones. */
  mayRead(connection: Connection, bytes: number): boolean {
    const turn = this.#turnOf(connection);
    turn.bytes += bytes;
    this.#turnSoon();
    const { maxReadBytesPerTurn, readSliceMs } = this.#limits;
    const hasShare = turn.bytes < maxReadBytesPerTurn && performance.now() - this.#turnBeganMs < readSliceMs;
    if (!hasShare) this.#stopped.add(connection);
    return hasShare;
  }

  /** The connection has ended. */
  forget(connection: Connection): void {
    this.#stopped.delete(connection);
  }

  #turnOf({ turnShare }: Connection): TurnShare {
    if (turnShare.turn !== this.#turnNumber) {
      turnShare.turn = this.#turnNumber;
      turnShare.started = 0;
      turnShare.bytes = 0;
    }
    return turnShare;
  }

  #turnSoon(): void {
    if (this.#turnIsDue) return;
    this.#turnIsDue = true;
    this.#turnBeganMs = performance.now();
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#turnIsDue = false;
    this.#totalStarted = 0;
    this.#turnNumber += 1;
    if (this.#stopped.size === 0) return;
    const untilMs = performance.now() + resumeSliceMs;
    // A connection that is stopped again waits for the next turn.
    for (const connection of [...this.#stopped]) {
      this.#stopped.delete(connection);
      connection.session.resumeReading();
      if (this.#totalStarted >= this.#limits.maxTotalStreamStartsPerTurn || performance.now() > untilMs) break;
    }
    if (this.#stopped.size > 0) this.#turnSoon();
  }
}
