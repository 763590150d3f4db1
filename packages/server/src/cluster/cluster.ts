import type { Entry } from '@tenure/core';
import type { Acknowledged } from '../engines/log-engine.ts';
import type { Identity } from '../api/identity.ts';
import type { MembershipServiceOptions } from '../api/membership-service.ts';
import type { LeaderOnly } from '../api/routes.ts';
import type { MethodHandler } from '../transport/transport.ts';
import { LeaderMonitor } from '../election/leader-monitor.ts';
import type { Leadership } from '../election/leadership.ts';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import { ClusterReach } from './cluster-reach.ts';
import { ForwardingDesk } from './forwarding-desk.ts';
import { GrpcLeaderStream } from './grpc-leader-stream.ts';
import { LeaderCalls } from './leader-calls.ts';
import { LeaderFinder } from './leader-finder.ts';
import type { OpenLeaderStream } from './leader-stream.ts';
import { peerLinkPath, PeerService, type PeerServiceOptions } from './peer-service.ts';
import type { ClientReason } from '../replica/client-reason.ts';
import type { Replica } from '../replica/replica.ts';

export interface ClusterOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly replica: Replica;
  readonly leadership: Leadership;
  readonly identity: Identity;
  /** Names this run of this server, below 2^32. */
  readonly run: number;
  /** Names it as its claims do. */
  readonly leaderId: string;
  readonly electionTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** Why what keeps the log cannot be asked. */
  readonly engineProblem: () => ClientReason | undefined;
  /** See LogEngine.lookNow. */
  readonly lookNow: (acknowledged?: Acknowledged) => void;
  readonly check: PeerServiceOptions['check'];
  readonly answer: PeerServiceOptions['answer'];
  /** How a stream to the leader is opened: over gRPC if it is left out. */
  readonly open?: OpenLeaderStream;
  /** There has been no leader for so long that clients should look elsewhere. */
  readonly onLost: () => void;
  readonly warn: (message: string) => void;
  readonly onFailed: (error: Error) => void;
}

const overGrpc: OpenLeaderStream = (address, listener) => new GrpcLeaderStream(address, listener);

/**
 * What a server has beside its own parts where others share its log: the stream from each follower to the leader, what
 * goes over it, and what is known of the others. A server alone has none of it.
 */
export class Cluster {
  readonly desk: ForwardingDesk;
  readonly reach: ClusterReach;
  /** Where other servers link themselves. */
  readonly linkPath = peerLinkPath;
  /** Beside those of etcd's API that every server answers. */
  readonly routes: ReadonlyMap<string, MethodHandler>;
  /** Calls that only the leader's clock can answer. */
  readonly leaderOnly: LeaderOnly;
  /** Whether this server leads, and how it hands the lead on. */
  readonly lead: Pick<MembershipServiceOptions, 'leads' | 'resign'>;
  readonly #options: ClusterOptions;
  readonly #finder: LeaderFinder;
  readonly #peers: PeerService;
  readonly #monitor: LeaderMonitor;

  constructor(options: ClusterOptions) {
    const { clock, random, open = overGrpc } = options;
    const { replica, leadership, identity, leaderId, run, lookNow, warn, onFailed, onLost } = options;
    const { memberId } = identity;
    this.#options = options;
    this.desk = new ForwardingDesk({
      renewHere: (id) => leadership.renew(id),
      revision: () => replica.state.currentRevision,
    });
    this.#peers = new PeerService({
      clock,
      random,
      replica,
      memberId: () => memberId,
      leaderId,
      renew: (id) => leadership.renew(id),
      check: options.check,
      answer: options.answer,
    });
    this.#finder = new LeaderFinder({
      clock,
      random,
      open,
      replica,
      memberId,
      run,
      leaderId,
      onRenewed: (id, ttlMs, revision) => this.desk.renewed(id, ttlMs, revision),
      onRenewalRefused: (id) => this.desk.refused(id),
      onLinked: (connection) => this.desk.linked(connection),
      lookNow,
      warn,
      onNameTaken: (message) => onFailed(new Error(message)),
    });
    this.reach = this.#createReach();
    this.#monitor = new LeaderMonitor({
      clock,
      electionTimeoutMs: options.electionTimeoutMs,
      hasLeader: () => this.reach.hasLeader,
      onLost: () => {
        this.desk.lost();
        onLost();
      },
    });
    const calls = new LeaderCalls({
      replica,
      connection: () => this.#finder.connection,
      problem: () => this.reach.problem,
      clock,
      timeoutMs: options.requestTimeoutMs,
    });
    this.leaderOnly = (path, request, local) => calls.answer(path, request, local);
    const link: MethodHandler = { kind: 'bidi', handle: (call) => this.#peers.handle(call) };
    this.routes = new Map([[peerLinkPath, link]]);
    this.lead = { leads: () => replica.leading, resign: (target) => leadership.resign(target) };
  }

  /** Up to where all linked servers have applied the log; Infinity while there are none. */
  get slowestFollower(): number {
    return Math.min(...this.#peers.peers.map(({ appliedIndex }) => appliedIndex));
  }

  /** Of the linked servers, the one that has applied most of the log: it can lead at once. */
  get bestSuccessor(): bigint | undefined {
    const [next] = [...this.#peers.peers].sort((a, b) => b.appliedIndex - a.appliedIndex);
    return next?.memberId;
  }

  /** Looks for the leader, as the log names it. */
  look(): void {
    this.#finder.look();
  }

  applied({ commands }: Entry): void {
    const isNews = commands[0]?.kind === 'claim' || commands.some(({ kind }) => kind === 'registerMember');
    if (isNews) this.look();
  }

  deposed(): void {
    this.#peers.closeAll();
    this.look();
  }

  /** No renewal is taken from here on, and no other server is served. */
  stopServing(): void {
    this.#monitor.stop();
    this.desk.stop();
    this.#peers.stop();
  }

  /** To be called when no call waits for the leader's answer any more. */
  stop(): void {
    this.#finder.stop();
  }

  #createReach(): ClusterReach {
    const { identity, leadership, engineProblem } = this.#options;
    return new ClusterReach({
      memberId: identity.memberId,
      leading: () => (leadership.leads ? this.#peers.view : undefined),
      hearsLeader: () => leadership.hasLeader,
      following: () => {
        const { connection, view, problem } = this.#finder;
        return { isLinked: connection !== undefined, view, problem };
      },
      engineProblem,
      isLost: () => this.#monitor.isLost,
    });
  }
}
