import type { Clock } from '../time/clock.ts';
import { FairQueue, type GrpcStatus, callIsOver } from '@tenure/grpc-server';
import { statusNamed } from '../transport/named-status.ts';
import { networkOf } from './client-network.ts';
import { FailureBackoff } from './failure-backoff.ts';

/**
 * Hashes at once. They run on libuv's four threads, which also sync the log to the disk, and compete with the event
 * loop for the cores of a small machine.
 */
const maxRunning = 1;
/** Limit on jobs that wait. */
export const maxWaitingHashes = 1_024;

export interface HashJob {
  /** The address of the client. */
  readonly client: string;
  /** All waiting jobs with the same text have the result of one hash; undefined shares with none. */
  readonly sharing: string | undefined;
  readonly signal: AbortSignal;
  readonly derive: () => Promise<Buffer>;
}

interface Waiting extends HashJob {
  readonly owner: string;
  /** Returns whether the password was right. */
  readonly finish: (derived: Buffer) => boolean;
  readonly fail: (error: Error) => void;
  readonly aborted: () => void;
}

/**
 * Runs few hashes at once, in turns of the clients. A client whose attempts fail waits longer and longer; the others do
 * not notice.
 *
 * Many programs of one user start together, and log in with the same password: one hash answers them all.
 */
export class HashQueue {
  readonly #clock: Clock;
  readonly #waiting = new FairQueue<string, Waiting>();
  readonly #shared = new Map<string, Set<Waiting>>();
  readonly #running = new Set<string>();
  readonly #backoff = new FailureBackoff();
  #isStopped = false;
  #cancelWake: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Jobs that wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Resolves with whether `isRight` accepts the hash. A false one is a failure of the client. */
  run(job: HashJob, isRight: (derived: Buffer) => boolean): Promise<boolean> {
    const owner = networkOf(job.client);
    const refusal = this.#refusal(job, owner);
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        ...job,
        owner,
        finish: (derived) => {
          const right = isRight(derived);
          resolve(right);
          return right;
        },
        fail: reject,
        aborted: () => {
          this.#remove(waiting);
          reject(callIsOver());
        },
      };
      this.#waiting.push(owner, waiting);
      if (job.sharing !== undefined) this.#sharers(job.sharing).add(waiting);
      job.signal.addEventListener('abort', waiting.aborted);
      this.#next();
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelWake();
    for (;;) {
      const owner = this.#waiting.next();
      const job = owner === undefined ? undefined : this.#waiting.peek(owner);
      if (job === undefined) return;
      this.#remove(job);
      job.fail(statusNamed('Stopped'));
    }
  }

  #refusal({ signal }: HashJob, owner: string): GrpcStatus | undefined {
    if (this.#isStopped) return statusNamed('Stopped');
    if (signal.aborted) return callIsOver();
    const hasRoom = this.#waiting.size < maxWaitingHashes || this.#makeRoom(owner);
    return hasRoom ? undefined : statusNamed('TooManyRequests');
  }

  /** The client with the most jobs loses its last one to a client with fewer. */
  #makeRoom(owner: string): boolean {
    const heaviest = this.#waiting.heaviest();
    const last = heaviest === undefined ? undefined : this.#waiting.peekLast(heaviest);
    if (last === undefined) return false;
    if (this.#waiting.waitingFor(last.owner) <= this.#waiting.waitingFor(owner) + 1) return false;
    this.#remove(last);
    last.fail(statusNamed('TooManyRequests'));
    return true;
  }

  #next(): void {
    this.#cancelWake();
    this.#cancelWake = () => {};
    while (this.#running.size < maxRunning) {
      const nowMs = this.#clock.monotonicMs();
      let wakeAtMs = Infinity;
      const owner = this.#waiting.next((each) => {
        if (this.#running.has(each)) return false;
        const readyAtMs = this.#backoff.readyAtMs(each, nowMs);
        if (readyAtMs <= nowMs) return true;
        wakeAtMs = Math.min(wakeAtMs, readyAtMs);
        return false;
      });
      const job = owner === undefined ? undefined : this.#waiting.take(owner);
      if (job === undefined) {
        if (wakeAtMs < Infinity) this.#cancelWake = this.#clock.after(wakeAtMs - nowMs, () => this.#next());
        return;
      }
      void this.#work(job);
    }
  }

  async #work(job: Waiting): Promise<void> {
    this.#remove(job);
    this.#running.add(job.owner);
    try {
      const derived = await job.derive();
      for (const each of [job, ...this.#sharersOf(job)]) {
        this.#remove(each);
        if (!each.finish(derived)) this.#backoff.failed(each.owner, this.#clock.monotonicMs());
      }
    } catch (error) {
      job.fail(error instanceof Error ? error : new Error(String(error)));
    }
    this.#running.delete(job.owner);
    this.#next();
  }

  #sharers(sharing: string): Set<Waiting> {
    const known = this.#shared.get(sharing);
    if (known !== undefined) return known;
    const sharers = new Set<Waiting>();
    this.#shared.set(sharing, sharers);
    return sharers;
  }

  #sharersOf({ sharing }: Waiting): readonly Waiting[] {
    return sharing === undefined ? [] : [...(this.#shared.get(sharing) ?? [])];
  }

  /** From the queue, which ends its wait; does nothing twice. */
  #remove(job: Waiting): void {
    job.signal.removeEventListener('abort', job.aborted);
    this.#waiting.delete(job.owner, job);
    if (job.sharing === undefined) return;
    const sharers = this.#shared.get(job.sharing);
    sharers?.delete(job);
    if (sharers?.size === 0) this.#shared.delete(job.sharing);
  }
}
