import type { StateMachine } from '@tenure/core';
import { breathe } from '../time/breathe.ts';
import type { Clock } from '../time/clock.ts';
import { statusNamed } from './status-of.ts';
import { callIsOver } from '../transport/grpc-status.ts';

/** A hash of the whole state, and of which moment it is. */
export interface StateHash {
  readonly hash: number;
  readonly revision: number;
  readonly epoch: number;
}

/** Callers that wait at once; one on top of them is refused. */
export const maxHashCallers = 1_024;

interface Caller {
  readonly resolve: (hash: StateHash) => void;
  readonly reject: (error: unknown) => void;
}

/** The hash that is being made. */
interface Round {
  readonly appliedIndex: number;
  readonly callers: Set<Caller>;
}

/**
 * Hashes the whole state, which takes as long as a snapshot, in slices. Those who ask at the same applied index share
 * one hash. Those who ask while one of an older index is made wait for the next, which is of a state no older than any
 * of their calls: so one is made at a time and one is due, however many ask. It is given up when all have left that it
 * is made for.
 */
export class SharedHash {
  readonly #state: StateMachine;
  readonly #clock: Clock;
  #round: Round | undefined;
  /** For whom the next is made. */
  #waiting = new Set<Caller>();

  constructor(state: StateMachine, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  /** Of the state at the call or later. Rejects with GrpcStatus when `signal` aborts, or when too many wait. */
  async next(signal: AbortSignal): Promise<StateHash> {
    if (signal.aborted) throw callIsOver();
    if (this.#waiting.size + (this.#round?.callers.size ?? 0) >= maxHashCallers) throw statusNamed('TooManyRequests');
    const callers = this.#round?.appliedIndex === this.#state.appliedIndex ? this.#round.callers : this.#waiting;
    let leave: () => void = () => {};
    const hashed = new Promise<StateHash>((resolve, reject) => {
      const caller = { resolve, reject };
      callers.add(caller);
      leave = () => {
        callers.delete(caller);
        reject(callIsOver());
      };
    });
    signal.addEventListener('abort', leave);
    if (this.#round === undefined) void this.#run();
    return hashed.finally(() => signal.removeEventListener('abort', leave));
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      const callers = this.#waiting;
      this.#waiting = new Set();
      const { currentRevision: revision, epoch } = this.#state;
      const steps = this.#state.snapshot();
      this.#round = { appliedIndex: steps.appliedIndex, callers };
      try {
        while (callers.size > 0 && steps.next().done !== true) await breathe(this.#clock);
        // From the last look at the callers to the end of the round nobody can join who would get half a hash.
        for (const { resolve } of callers) resolve({ hash: steps.check, revision, epoch });
      } catch (error) {
        for (const { reject } of callers) reject(error);
      }
      steps.return();
      this.#round = undefined;
    }
  }
}
