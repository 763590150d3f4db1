import type { StateMachine } from '@tenure/core';
import { yieldToEventLoop } from '../time/yield-to-event-loop.ts';
import type { Clock } from '../time/clock.ts';
import { statusNamed } from './status-of.ts';
import { callIsOver } from '@tenure/grpc-server';

/** A hash of the whole state, and the applied index and revision that it is of. */
export interface StateHash {
  readonly hash: number;
  readonly revision: number;
  readonly epoch: number;
}

/** Callers that wait at once; one more is refused. */
export const maxHashCallers = 1_024;

interface Caller {
  readonly resolve: (hash: StateHash) => void;
  readonly reject: (error: unknown) => void;
}

/** The hash in progress. */
interface Round {
  readonly appliedIndex: number;
  readonly callers: Set<Caller>;
}

/**
 * Hashes the whole state, which takes as long as a snapshot, in slices. Callers at the same applied index share one
 * hash. Callers that arrive while one of an older index is computed wait for the next, which is of a state no older
 * than any of their calls: so at most one is in progress and one is pending, for any number of callers. It is stopped
 * when all its callers have left.
 */
export class SharedHash {
  readonly #state: StateMachine;
  readonly #clock: Clock;
  #round: Round | undefined;
  /** The callers of the next one. */
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
        while (callers.size > 0 && steps.next().done !== true) await yieldToEventLoop(this.#clock);
        // From the last check of the callers to the end of the round no caller can join, since it would get half a
        // hash.
        for (const { resolve } of callers) resolve({ hash: steps.check, revision, epoch });
      } catch (error) {
        for (const { reject } of callers) reject(error);
      }
      steps.return();
      this.#round = undefined;
    }
  }
}
