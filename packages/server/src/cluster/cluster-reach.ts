import { type ClientReason, clientReasons } from '../replica/client-reason.ts';
import type { LeaderView } from './follower-link.ts';

export interface ClusterReachOptions {
  readonly memberId: bigint;
  /** Whether this server leads, and how the leader's view of the members is then. */
  readonly leading: () => LeaderView | undefined;
  /** Whether this server has heard of a leader in the log within the election timeout. */
  readonly hearsLeader: () => boolean;
  /** Whether there is a stream to the leader, and what the leader said last over it. */
  readonly following: () => {
    readonly isLinked: boolean;
    readonly view: LeaderView;
    readonly problem: ClientReason | undefined;
  };
  /** Why what keeps the log cannot be asked, or takes nothing. */
  readonly engineProblem: () => ClientReason | undefined;
  /** There has been no leader for so long that clients were told to look elsewhere. */
  readonly isLost: () => boolean;
}

/** Whom this server reaches, and why not: for health checks, Status, MemberList, and requests in vain. */
export class ClusterReach {
  readonly #options: ClusterReachOptions;

  constructor(options: ClusterReachOptions) {
    this.#options = options;
  }

  /**
   * Whether this server leads, or hears of a leader in the log and has a stream to it. What needs a leader is answered
   * then, as far as anybody can know.
   */
  get hasLeader(): boolean {
    const { leading, hearsLeader, following } = this.#options;
    return leading() !== undefined || (hearsLeader() && following().isLinked);
  }

  /** Why nothing that needs the leader or the log is answered here now; undefined when nothing is known to be wrong. */
  get problem(): ClientReason | undefined {
    const { engineProblem, hearsLeader, following } = this.#options;
    const engine = engineProblem();
    if (engine !== undefined) return engine;
    if (this.hasLeader) return undefined;
    return hearsLeader() ? following().problem : clientReasons.noLeader;
  }

  /**
   * Whether a member counts as silent: the leader has heard nothing from it for some seconds. A server without a leader
   * knows of nobody but itself once it has been so for long; until then, what the last leader said stands.
   */
  isUnreachable(id: bigint): boolean {
    const { memberId, leading, following, isLost } = this.#options;
    if (id === memberId) return false;
    const own = leading();
    if (own !== undefined) return own.silent.includes(id);
    return isLost() || following().view.silent.includes(id);
  }

  /** Where the log ended, as far as this server was told. */
  get logIndex(): number {
    return this.#options.leading()?.index ?? this.#options.following().view.index;
  }
}
