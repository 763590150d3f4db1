import { errorCatalogue } from '@tenure/protocol';
import type { Command, CommandResponse, Entry, Member, StateMachine } from '@tenure/core';
import { ProposalError, type ProposalErrorCode } from '../replica/proposal-error.ts';
import type { Clock } from '../time/clock.ts';
import { sleep } from '../time/sleep.ts';
import { GrpcStatus } from '@tenure/grpc-server';
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
  /** The addresses for servers alone; none if servers use those for clients. Known once the server listens. */
  readonly peerUrls: () => readonly string[];
  readonly warn: (message: string) => void;
  readonly onFailed: (error: Error) => void;
  readonly clock: Clock;
}

/** The delay before a retry. */
const retryDelayMs = 200;
/** A leader that is overloaded for longer, or a log that outruns this server for longer, does not recover by then. */
const maxRetryMs = 60_000;
const retried: ReadonlySet<ProposalErrorCode> = new Set(['overloaded', 'skipped']);
/** The interval at which a server asks whether its peer URLs may be registered by now. Without a limit of attempts. */
const peerUrlsIntervalMs = 1_000;
const peerUrlsWait =
  'the peer URLs of this server are not registered yet: a member is not connected, or is of a version that does not ' +
  'know them (upgrade it, or remove it); until then other servers reach this one at its URLs for clients';

/** Keeps this server and its addresses in the list of members in the log. */
export class MemberRegistration {
  readonly #options: MemberRegistrationOptions;
  #isRegistered = false;
  #cancelRetry: () => void = () => {};
  #isWaitKnown = false;
  #isStopped = false;

  constructor(options: MemberRegistrationOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the members in the log include this server with its addresses. Rejects when another server has its
   * name.
   *
   * Servers of an earlier version stop at a registration with peer URLs. While there may be one, this server is
   * registered without them, and asks again from time to time.
   */
  async register(): Promise<void> {
    const peerUrls = this.#options.peerUrls();
    try {
      await this.#registerWith(peerUrls);
    } catch (error) {
      if (peerUrls.length === 0 || !isTooEarly(error)) throw error;
      await this.#registerWith([]);
      this.#retryLater();
    }
    this.#isRegistered = true;
  }

  async #registerWith(peerUrls: readonly string[]): Promise<void> {
    const { memberId: id, name } = this.#options;
    if (this.#isKnown(peerUrls)) return;
    const response = await this.#propose({ kind: 'registerMember', id, name, clientUrls: this.#clientUrls, peerUrls });
    // Another server started at the same moment under this name and registered first.
    if (response?.kind === 'error') throw new Error(nameTakenText);
  }

  get #clientUrls(): readonly string[] {
    return this.#options.clientUrls();
  }

  /** This server in the log; undefined before it has registered, and once it was removed. */
  get #member(): Member | undefined {
    const { replica, memberId } = this.#options;
    return replica.state.members.find(({ id }) => id === memberId);
  }

  /** Whether the log holds this server with these addresses. */
  #isKnown(peerUrls: readonly string[]): boolean {
    const known = this.#member;
    if (known === undefined || known.clientUrls.join() !== this.#clientUrls.join()) return false;
    return (known.peerUrls ?? []).join() === peerUrls.join();
  }

  /**
   * An overloaded leader is no reason for a server not to start: an overload passes. Neither is an outcome that was in
   * a part of the log that this server skipped, however late it learns that: the snapshot may say that it is registered
   * (then undefined), and a registration may be made twice.
   */
  async #propose(command: Extract<Command, { kind: 'registerMember' }>): Promise<CommandResponse | undefined> {
    const { replica, clock } = this.#options;
    const beganMs = clock.monotonicMs();
    for (;;) {
      try {
        return await replica.propose(command);
      } catch (error) {
        const mayRetry = error instanceof ProposalError && retried.has(error.code);
        if (!mayRetry || clock.monotonicMs() - beganMs >= maxRetryMs) throw error;
        await sleep(clock, retryDelayMs);
        if (this.#isKnown(command.peerUrls ?? [])) return undefined;
      }
    }
  }

  #retryLater(): void {
    const { clock, warn } = this.#options;
    if (!this.#isWaitKnown) warn(peerUrlsWait);
    this.#isWaitKnown = true;
    this.#cancelRetry();
    if (this.#isStopped) return;
    this.#cancelRetry = clock.after(peerUrlsIntervalMs, () => {
      // One that was removed meanwhile is listed again only when it leads, or starts again.
      if (this.#member !== undefined) this.#registerAgain(() => this.#retryLater());
    });
  }

  #registerAgain(onNoOutcome: () => void): void {
    this.register().catch((error: unknown) => {
      if (error instanceof ProposalError) onNoOutcome();
      else if (error instanceof Error) this.#options.onFailed(error);
    });
  }

  /** A leader must be a member for followers to find it: a leader that was removed while it runs registers again. */
  applied({ commands }: Entry): void {
    const mayConcern = commands[0]?.kind === 'claim' || commands.some(({ kind }) => kind === 'removeMember');
    if (!mayConcern || !this.#isRegistered || !this.#options.replica.leading) return;
    // Without an outcome, the next leader has the same registration as this one.
    this.#registerAgain(() => {});
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelRetry();
  }
}

/** The leader, which may be of an earlier version itself, does not append it. */
function isTooEarly(error: unknown): boolean {
  if (error instanceof GrpcStatus) return error.message === errorCatalogue.NotCapable.text;
  return error instanceof ProposalError && error.code === 'stopped';
}
