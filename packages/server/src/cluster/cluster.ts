import type { Entry } from '@tenure/core';
import type { GrpcTls } from '@tenure/grpc-client';
import type { Acknowledged } from '../engines/log-engine.ts';
import type { Identity } from '../api/identity.ts';
import type { MembershipServiceOptions } from '../api/membership-service.ts';
import type { LeaderOnly } from '../api/routes.ts';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import type { DuplexCall, MethodHandler } from '../transport/transport.ts';
import { LeaderMonitor } from '../leadership/leader-monitor.ts';
import type { Leadership } from '../leadership/leadership.ts';
import type { LeadershipDriver } from '../leadership/leadership-driver.ts';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import { Reachability } from './reachability.ts';
import { RenewalForwarder } from './follower/renewal-forwarder.ts';
import { GrpcLeaderStream } from './follower/grpc-leader-stream.ts';
import { LeaderOnlyCalls } from './follower/leader-only-calls.ts';
import { LeaderFinder } from './follower/leader-finder.ts';
import type { OpenLeaderStream } from './follower/leader-stream.ts';
import { peerLinkPath, peerServiceName, PeerService, type PeerServiceOptions } from './leader/peer-service.ts';
import type { ClientReason } from '../replica/client-reason.ts';
import type { Replica } from '../replica/replica.ts';

export interface ClusterOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly replica: Replica;
  readonly leadership: Pick<Leadership, 'leads' | 'hasLeader'>;
  readonly driver: Pick<LeadershipDriver, 'renew' | 'resign'>;
  readonly identity: Identity;
  /** Identifies this run of this server, below 2^32. */
  readonly run: number;
  /** Identifies it in its claims. */
  readonly leaderId: string;
  readonly electionTimeoutMs: number;
  /** This server listens at addresses for servers alone. */
  readonly hasPeerPort: boolean;
  readonly requestTimeoutMs: number;
  /** Why the engine cannot be asked. */
  readonly engineProblem: () => ClientReason | undefined;
  /** See LogEngine.lookNow. */
  readonly lookNow: (acknowledged?: Acknowledged) => void;
  readonly check: PeerServiceOptions['check'];
  readonly answer: PeerServiceOptions['answer'];
  /** Opens a stream to the leader; over gRPC by default. */
  readonly open?: OpenLeaderStream | undefined;
  /** The certificates for a stream that is opened now. */
  readonly tls: () => GrpcTls;
  /** There has been no leader for so long that clients should try another server. */
  readonly onLost: () => void;
  readonly warn: (message: string) => void;
  readonly onFailed: (error: Error) => void;
}

/**
 * The parts of a server that exist only on a shared log: the stream from each follower to the leader, the requests on
 * it, and the knowledge about the other members. A server alone has none of them.
 */
export class Cluster {
  readonly forwarder: RenewalForwarder;
  readonly reach: Reachability;
  /** The service to which followers connect. */
  readonly linkPath = peerLinkPath;
  /** At the addresses for clients: the services beside those of etcd's API. */
  readonly routes: ReadonlyMap<string, MethodHandler>;
  /** All services at the addresses for servers alone. */
  readonly routesForServers: ReadonlyMap<string, MethodHandler>;
  /** Calls that only the leader's clock can answer. */
  readonly leaderOnly: LeaderOnly;
  /** Whether this server leads, and how it transfers leadership. */
  readonly lead: Pick<MembershipServiceOptions, 'leads' | 'resign'>;
  readonly #options: ClusterOptions;
  readonly #finder: LeaderFinder;
  readonly #peers: PeerService;
  readonly #monitor: LeaderMonitor;

  constructor(options: ClusterOptions) {
    const { clock, random, tls } = options;
    const overGrpc: OpenLeaderStream = (url, listener) => new GrpcLeaderStream(url, listener, tls());
    const { open = overGrpc } = options;
    const { replica, driver, identity, leaderId, run, lookNow, warn, onFailed, onLost } = options;
    const { memberId } = identity;
    this.#options = options;
    this.forwarder = new RenewalForwarder({
      renewHere: (id, by) => driver.renew(id, by),
      revision: () => replica.state.currentRevision,
    });
    this.#peers = new PeerService({
      clock,
      random,
      replica,
      memberId: () => memberId,
      leaderId,
      renew: (id, by) => driver.renew(id, by),
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
      onRenewed: (renewal, ttlMs, revision) => this.forwarder.renewed(renewal, ttlMs, revision),
      onRenewalRefused: (renewal, error) => this.forwarder.refused(renewal, error),
      onLinked: (connection) => this.forwarder.linked(connection),
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
        this.forwarder.lost();
        onLost();
      },
    });
    const calls = new LeaderOnlyCalls({
      replica,
      connection: () => this.#finder.connection,
      problem: () => this.reach.problem,
      clock,
      timeoutMs: options.requestTimeoutMs,
    });
    this.leaderOnly = (path, request, call, local) => calls.answer({ path, request, by: call.requester }, local);
    const linkAtClients: MethodHandler = { kind: 'bidi', handle: (call) => this.#handleAtClients(call) };
    this.routes = new Map([[peerLinkPath, linkAtClients]]);
    const link: MethodHandler = { kind: 'bidi', handle: (call) => this.#peers.handle(call, 'servers') };
    this.routesForServers = new Map([[peerLinkPath, link]]);
    this.lead = { leads: () => replica.leading, resign: (target) => driver.resign(target) };
  }

  /** The index up to which all linked followers have applied the log; Infinity without followers. */
  get slowestFollower(): number {
    return Math.min(...this.#peers.peers.map(({ appliedIndex }) => appliedIndex));
  }

  /** The linked follower that has applied most of the log: it can lead at once. */
  get bestSuccessor(): bigint | undefined {
    const [next] = [...this.#peers.peers].sort((a, b) => b.appliedIndex - a.appliedIndex);
    return next?.memberId;
  }

  /** Whether every server can apply commands of this kind; a follower leaves the answer to its leader. */
  canAllApply(kind: number): boolean {
    return !this.#options.replica.leading || this.#peers.canAllApply(kind);
  }

  /** Looks for the leader that the log names. */
  look(): void {
    this.#finder.look();
  }

  applied({ commands }: Entry): void {
    const isNews = commands[0]?.kind === 'claim' || commands.some(({ kind }) => kind === 'registerMember');
    if (isNews) this.look();
    if (isNews && this.#isForClients) this.#peers.endAtClients();
  }

  deposed(): void {
    this.#peers.closeAll();
    this.look();
  }

  /** From here on no renewal is accepted, and no follower is served. */
  stopServing(): void {
    this.#monitor.stop();
    this.forwarder.stop();
    this.#peers.stop();
  }

  /** To be called when no call waits for the leader's answer any more. */
  stop(): void {
    this.#finder.stop();
  }

  /**
   * Whether the addresses for clients are for them alone: as soon as other servers read in the log where to go instead.
   */
  get #isForClients(): boolean {
    const { replica, identity, hasPeerPort } = this.#options;
    return hasPeerPort && replica.state.members.some(({ id, peerUrls }) => id === identity.memberId && peerUrls);
  }

  /** Like a service that does not exist. */
  #handleAtClients(call: DuplexCall): void {
    if (this.#isForClients) call.end(new GrpcStatus(GrpcCode.unimplemented, `unknown service ${peerServiceName}`));
    else this.#peers.handle(call, 'clients');
  }

  #createReach(): Reachability {
    const { identity, leadership, engineProblem } = this.#options;
    return new Reachability({
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
