import type { Requester } from '@tenure/core';
import { statusNamed, statusOf, timedOut } from '../../api/status-of.ts';
import type { Reply } from '@tenure/grpc-server';
import type { Clock } from '../../time/clock.ts';
import { sleep } from '../../time/sleep.ts';
import type { ClientReason } from '../../replica/client-reason.ts';
import { ProposalError } from '../../replica/proposal-error.ts';

/** A call for the leader, which checks the permission of its requester. */
export interface LeaderOnlyCall {
  readonly path: string;
  readonly request: Buffer;
  /** Undefined while authentication is disabled. */
  readonly by: Requester | undefined;
}

export interface LeaderOnlyCallsOptions {
  readonly replica: {
    readonly leading: boolean;
    /** See Replica.barrier. */
    barrier(): Promise<void>;
  };
  /** The link to the leader, while there is one. */
  readonly connection: () =>
    | { call(path: string, request: Buffer, by: Requester | undefined): Promise<Buffer> }
    | undefined;
  /** Why no leader answers. */
  readonly problem: () => ClientReason | undefined;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

/** Limits on calls that wait for the leader, and on their bytes; more are refused as overloaded. */
const maxWaitingCalls = 10_000;
const maxWaitingBytes = 64 * 1024 * 1024;
const retryDelayMs = 50;

/**
 * Unary calls that only the leader's clock can answer: here behind a barrier, or by the leader; retried during a change
 * of leader. A call is held until it is answered or times out, even if its client has disconnected.
 */
export class LeaderOnlyCalls {
  readonly #options: LeaderOnlyCallsOptions;
  #calls = 0;
  #bytes = 0;

  constructor(options: LeaderOnlyCallsOptions) {
    this.#options = options;
  }

  async answer(call: LeaderOnlyCall, local: () => Reply | Promise<Reply>): Promise<Reply> {
    const { request } = call;
    if (this.#calls >= maxWaitingCalls || this.#bytes >= maxWaitingBytes) {
      throw new ProposalError('overloaded', 'too many calls wait for the leader');
    }
    this.#calls += 1;
    this.#bytes += request.length;
    try {
      return await this.#answer(call, local);
    } finally {
      this.#calls -= 1;
      this.#bytes -= request.length;
    }
  }

  async #answer({ path, request, by }: LeaderOnlyCall, local: () => Reply | Promise<Reply>): Promise<Reply> {
    const { replica, connection, problem, clock, timeoutMs } = this.#options;
    const untilMs = clock.monotonicMs() + timeoutMs;
    for (;;) {
      try {
        if (replica.leading) {
          await replica.barrier();
          return await local();
        }
        const leader = connection();
        if (leader !== undefined) return await leader.call(path, request, by);
      } catch (error) {
        const status = statusOf(error);
        if (status === undefined || status.code !== statusNamed('NoLeader').code) throw error;
      }
      if (clock.monotonicMs() >= untilMs) throw timedOut(problem());
      await sleep(clock, retryDelayMs);
    }
  }
}
