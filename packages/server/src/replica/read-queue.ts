import type { ClientReason } from './client-reason.ts';
import { ProposalError } from './proposal-error.ts';

interface Reader {
  readonly expiresMs: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Limit on reads that wait for a read index; more are refused as overloaded. */
const maxWaitingReads = 65_536;

/**
 * Linearizable reads that wait until the local state is no older than their arrival. One question to the leader serves
 * all reads that wait when it is sent; later reads wait for the next question. Without a leader, a read waits until its
 * timeout.
 */
export class ReadQueue {
  readonly #timeoutMs: number;
  /**
   * Resolves when the state is as new as the call. Undefined while there is no leader to ask. Rejects when the answer
   * was lost.
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
   * Asks the leader if a read waits, no question is in flight, and a leader can be asked. To be called when that may
   * have changed.
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
        // The question had no answer. These reads ask again, under the next leader if there is one.
        this.#asked = [];
        this.#waiting = [...readers, ...this.#waiting];
      },
    );
  }

  /** Refuses reads whose time is up. `reason` says why they had no answer, if that is known. */
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
