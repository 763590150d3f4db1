import { ProposalError } from '../replica/proposal-error.ts';
import type { Clock } from '../time/clock.ts';
import { FairQueue, callIsOver } from '@tenure/grpc-server';
import type { Call } from '../transport/transport.ts';

/** Work that may take long: each call does a short step of it, and returns whether all is done. */
export type WorkStep = () => boolean;

/** The caller of the work: connections take turns, and work for an ended call is dropped. */
export type Caller = Pick<Call, 'connection' | 'signal' | 'requester'>;

/** The event loop is held for about this long in a turn, for any amount of work. */
const sliceMs = 4;
/** Jobs that run concurrently: the memory of a job is used this many times at once. */
const maxRunning = 4;
/** Of these, jobs of one connection, so that another one need not wait for them to end. */
const maxRunningOfConnection = 2;
/** Waiting jobs; further ones are refused. */
const maxWaitingOfConnection = 64;
const maxWaiting = 1_024;
/** Beyond `maxWaiting` a connection without a waiting job may still add one, up to this many jobs in all. */
const maxWaitingAndFirst = 4_096;

interface Job {
  readonly step: WorkStep;
  readonly caller: Caller;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  readonly drop: () => void;
}

/**
 * Does long work in slices, one in each turn of the event loop, so that no other request waits for more than a slice.
 * Running jobs take turns. The others begin in order of arrival on their connection, round-robin between connections.
 */
export class SlicedWork {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'soon'>;
  readonly #running: Job[] = [];
  readonly #waiting = new FairQueue<object, Job>();
  /** The unfinished jobs, by their step: callers with the same step share the work. */
  readonly #jobs = new Map<WorkStep, Set<Job>>();
  #isScheduled = false;

  constructor(clock: Pick<Clock, 'monotonicMs' | 'soon'>) {
    this.#clock = clock;
  }

  /** The number of unfinished jobs. */
  get size(): number {
    return this.#running.length + this.#waiting.size;
  }

  /**
   * Resolves when `step` has returned true, for all concurrent callers with the same `step`. Rejects with its error, as
   * cancelled when the call is over, or as overloaded without having called it. Work that `isOwed` is not refused: its
   * amount is limited by the calls that a connection may have open.
   */
  run(step: WorkStep, caller: Caller, isOwed = false): Promise<void> {
    if (!isOwed && this.#isFullFor(caller.connection)) {
      return Promise.reject(new ProposalError('overloaded', 'too many long requests wait for their turn'));
    }
    if (caller.signal.aborted) return Promise.reject(callIsOver());
    return new Promise((resolve, reject) => {
      const drop = (): void => this.#end(job, () => reject(callIsOver()));
      const job: Job = { step, caller, resolve, reject, drop };
      const sharing = this.#jobs.get(step);
      if (sharing === undefined) this.#jobs.set(step, new Set([job]));
      else sharing.add(job);
      caller.signal.addEventListener('abort', drop, { once: true });
      this.#waiting.push(caller.connection, job);
      this.#begin();
    });
  }

  #isFullFor(connection: object): boolean {
    const own = this.#waiting.waitingFor(connection);
    const all = this.#waiting.size;
    return own >= maxWaitingOfConnection || all >= (own > 0 ? maxWaiting : maxWaitingAndFirst);
  }

  #begin(): void {
    while (this.#running.length < maxRunning) {
      const connection = this.#waiting.next(this.#mayRunMore);
      if (connection === undefined) break;
      this.#running.push(this.#waiting.take(connection)!);
    }
    if (this.#isScheduled || this.#running.length === 0) return;
    this.#isScheduled = true;
    this.#clock.soon(() => {
      this.#isScheduled = false;
      this.#slice();
      this.#begin();
    });
  }

  readonly #mayRunMore = (connection: object): boolean => {
    let running = 0;
    for (const { caller } of this.#running) if (caller.connection === connection) running += 1;
    return running < maxRunningOfConnection;
  };

  #slice(): void {
    // All running jobs may have been dropped since.
    const job = this.#running.shift();
    if (job === undefined) return;
    this.#running.push(job);
    const endMs = this.#clock.monotonicMs() + sliceMs;
    try {
      let done = job.step();
      while (!done && this.#clock.monotonicMs() < endMs) done = job.step();
      if (done) this.#endAll(job.step, ({ resolve }) => resolve());
    } catch (error) {
      this.#endAll(job.step, ({ reject }) => reject(error));
    }
  }

  #endAll(step: WorkStep, settle: (job: Job) => void): void {
    for (const job of [...(this.#jobs.get(step) ?? [])]) this.#end(job, () => settle(job));
  }

  #end(job: Job, settle: () => void): void {
    const { step, caller, drop } = job;
    const sharing = this.#jobs.get(step);
    sharing?.delete(job);
    if (sharing?.size === 0) this.#jobs.delete(step);
    caller.signal.removeEventListener('abort', drop);
    const place = this.#running.indexOf(job);
    if (place >= 0) this.#running.splice(place, 1);
    else this.#waiting.delete(caller.connection, job);
    settle();
  }
}
