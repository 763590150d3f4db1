import { type ClientReason, clientReasons } from '../replica/client-reason.ts';
import type { LeaderView } from './link/leader-view.ts';

export interface ReachabilityOptions {
  readonly memberId: bigint;
  /** Whether this server leads, and its view of the members as the leader. */
  readonly leading: () => LeaderView | undefined;
  /** Whether this server has applied an entry of a leader within the election timeout. */
  readonly hearsLeader: () => boolean;
  /** Whether there is a stream to the leader, and the leader's last view of the cluster. */
  readonly following: () => {
    readonly isLinked: boolean;
    readonly view: LeaderView;
    readonly problem: ClientReason | undefined;
  };
  /** Why the engine cannot be asked, or accepts nothing. */
  readonly engineProblem: () => ClientReason | undefined;
  /** There has been no leader for so long that clients were told to try another server. */
  readonly isLost: () => boolean;
}

/** What this server can reach, and why not: for health checks, Status, MemberList, and requests without an answer. */
export class Reachability {
  readonly #options: ReachabilityOptions;

  constructor(options: ReachabilityOptions) {
    this.#options = options;
  }

  /**
   * Whether this server leads, or follows a leader in the log and has a stream to it. Requests that need a leader can
   * then be answered, as far as this server knows.
   */
  get hasLeader(): boolean {
    const { leading, hearsLeader, following } = this.#options;
    return leading() !== undefined || (hearsLeader() && following().isLinked);
  }

  /** Why no request that needs the leader or the log is answered here now; undefined when no problem is known. */
  get problem(): ClientReason | undefined {
    const { engineProblem, hearsLeader, following } = this.#options;
    const engine = engineProblem();
    if (engine !== undefined) return engine;
    if (this.hasLeader) return undefined;
    return hearsLeader() ? following().problem : clientReasons.noLeader;
  }

  /**
   * Whether a member counts as silent: the leader has received nothing from it for some seconds. A server that has been
   * without a leader for that long counts every member but itself as silent; until then, the last leader's view
   * applies.
   */
  isUnreachable(id: bigint): boolean {
    const { memberId, leading, following, isLost } = this.#options;
    if (id === memberId) return false;
    const own = leading();
    if (own !== undefined) return own.silent.includes(id);
    return isLost() || following().view.silent.includes(id);
  }

  /** The end of the log, as far as this server was told. */
  get logIndex(): number {
    return this.#options.leading()?.index ?? this.#options.following().view.index;
  }
}
