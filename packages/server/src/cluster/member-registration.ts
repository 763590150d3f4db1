import type { Command, CommandResponse, Entry, StateMachine } from '@tenure/core';
import { ProposalError, type ProposalErrorCode } from '../replica/proposal-error.ts';
import type { Clock } from '../time/clock.ts';
import { sleep } from '../time/sleep.ts';
import { nameTakenText } from './link/member-name.ts';

export interface MemberRegistrationOptions {
  readonly replica: {
    readonly state: StateMachine;
    readonly leading: boolean;
    propose(command: Command): Promise<CommandResponse>;
  };
  readonly memberId: bigint;
  readonly name: string;
  /** The addresses for clients. Known once the server listens. */
  readonly clientUrls: () => readonly string[];
  readonly onFailed: (error: Error) => void;
  readonly clock: Clock;
}

/** The delay before a retry. */
const retryDelayMs = 200;
/** A leader that is overloaded for longer, or a log that outruns this server for longer, does not recover by then. */
const maxRetryMs = 60_000;
const retried: ReadonlySet<ProposalErrorCode> = new Set(['overloaded', 'skipped']);

/** Keeps this server and its addresses in the list of members in the log. */
export class MemberRegistration {
  readonly #options: MemberRegistrationOptions;
  #isRegistered = false;

  constructor(options: MemberRegistrationOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the members in the log include this server with its addresses. Rejects when another server has its
   * name.
   */
  async register(): Promise<void> {
    const { memberId: id, name } = this.#options;
    const clientUrls = this.#options.clientUrls();
    if (!this.#isKnown) {
      const response = await this.#propose({ kind: 'registerMember', id, name, clientUrls });
      // Another server started at the same moment under this name and registered first.
      if (response?.kind === 'error') throw new Error(nameTakenText);
    }
    this.#isRegistered = true;
  }

  /** Whether the log holds this server with its addresses. */
  get #isKnown(): boolean {
    const { replica, memberId: id } = this.#options;
    const known = replica.state.members.find((member) => member.id === id);
    return known?.clientUrls.join() === this.#options.clientUrls().join();
  }

  /**
   * An overloaded leader is no reason for a server not to start: an overload passes. Neither is an outcome that was in
   * a part of the log that this server skipped, however late it learns that: the snapshot may say that it is registered
   * (then undefined), and a registration may be made twice.
   */
  async #propose(command: Command): Promise<CommandResponse | undefined> {
    const { replica, clock } = this.#options;
    const beganMs = clock.monotonicMs();
    for (;;) {
      try {
        return await replica.propose(command);
      } catch (error) {
        const mayRetry = error instanceof ProposalError && retried.has(error.code);
        if (!mayRetry || clock.monotonicMs() - beganMs >= maxRetryMs) throw error;
        await sleep(clock, retryDelayMs);
        if (this.#isKnown) return undefined;
      }
    }
  }

  /** A leader must be a member for followers to find it: a leader that was removed while it runs registers again. */
  applied({ commands }: Entry): void {
    const mayConcern = commands[0]?.kind === 'claim' || commands.some(({ kind }) => kind === 'removeMember');
    if (!mayConcern || !this.#isRegistered || !this.#options.replica.leading) return;
    this.register().catch((error: unknown) => {
      // Without an outcome, the next leader has the same registration as this one.
      if (error instanceof Error && !(error instanceof ProposalError)) this.#options.onFailed(error);
    });
  }
}
