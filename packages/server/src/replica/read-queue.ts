import type { ClientReason } from './client-reason.ts';
import { ProposalError } from './proposal-error.ts';

interface Reader {
  readonly expiresMs: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** What may wait for a read index; more is refused as overloaded. */
const maxWaitingReads = 65_536;

/**
 * Linearizable reads that wait until the state here is no older than their arrival. One question to the leader serves
 * all that wait when it is asked; those that come later wait for the next. While nobody leads, they wait for their
 * deadline.
 */
export class ReadQueue {
  readonly #timeoutMs: number;
  /**
   * Resolves when the state is as new as the call; undefined while nobody can be asked; rejects when the answer was
   * lost.
   */
  readonly #catchUp: () => Promise<void> | undefined;
  #waiting: Reader[] = [];
  #asked: Reader[] = [];

  constructor(timeoutMs: number, catchUp: () => Promise<void> | undefined) {
    this.#timeoutMs = timeoutMs;
    this.#catchUp = catchUp;
  }

  read(nowMs: number): Promise<void> {
    if (this.#waiting.length >= maxWaitingReads) {
      return Promise.reject(new ProposalError('overloaded', 'too many reads wait for the leader'));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ expiresMs: nowMs + this.#timeoutMs, resolve, reject });
      this.pump();
    });
  }

  /**
   * Asks, if somebody waits, nothing is asked yet, and somebody can be asked: to be called when that may have
   * changed.
   */
  pump(): void {
    if (this.#asked.length > 0 || this.#waiting.length === 0) return;
    const answer = this.#catchUp();
    if (answer === undefined) return;
    const readers = this.#waiting;
    this.#asked = readers;
    this.#waiting = [];
    answer.then(
      () => {
        this.#asked = [];
        for (const { resolve } of readers) resolve();
        this.pump();
      },
      () => {
        // Nothing was promised to these: they ask again, whoever leads then.
        this.#asked = [];
        this.#waiting = [...readers, ...this.#waiting];
      },
    );
  }

  /** Gives up on those that have waited for too long; `reason` says why, if it is known. */
  expire(nowMs: number, reason?: ClientReason): void {
    const late = (reader: Reader): boolean => reader.expiresMs <= nowMs;
    if (!this.#waiting.some(late) && !this.#asked.some(late)) return;
    const timeout = new ProposalError('timeout', 'the leader could not be asked in time', reason);
    for (const reader of [...this.#waiting, ...this.#asked]) if (late(reader)) reader.reject(timeout);
    this.#waiting = this.#waiting.filter((reader) => !late(reader));
  }

  failAll(error: Error): void {
    for (const { reject } of [...this.#waiting.splice(0), ...this.#asked]) reject(error);
  }
}
