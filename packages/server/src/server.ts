import { defaultTxnLimits, type Applied, type Entry, type StateMachine } from '@tenure/core';
import { responseHeaderPrefix } from '@tenure/codec';
import type { Cluster } from './cluster/cluster.ts';
import type { ServerConfig } from './config/server-config.ts';
import type { EngineHealth } from './engines/engine-health.ts';
import type { LogEngine, Position } from './engines/log-engine.ts';
import { listenAt, openFrontDoor, type FrontDoor } from './front-door.ts';
import type { Identity } from './api/identity.ts';
import { leaderOnlyPaths } from './api/routes.ts';
import type { Caller } from './api/sliced-work.ts';
import { answered, statusNamed } from './api/status-of.ts';
import { builtReply } from './transport/transport.ts';
import { createHttpHandler } from './http/http-handler.ts';
import { ServerMetrics, type MetricSource } from './http/server-metrics.ts';
import { Leadership } from './election/leadership.ts';
import type { LeaderLeaseTracker } from './leases/leader-lease-tracker.ts';
import type { LeaseDesk } from './leases/lease-desk.ts';
import type { Logger } from './logging/logger.ts';
import { leaderName, memberOfLeader, nameTakenText } from './cluster/member-name.ts';
import { randomId } from './random/random-id.ts';
import type { Random } from './random/random.ts';
import { checkCluster } from './replica/check-cluster.ts';
import type { ClientReason } from './replica/client-reason.ts';
import { ensureCluster } from './replica/ensure-cluster.ts';
import { decodeCommand } from './replica/command-codec.ts';
import { ProposalError } from './replica/proposal-error.ts';
import { recover, type Recovered } from './replica/recovery.ts';
import { Replica } from './replica/replica.ts';
import { Upkeep } from './replica/upkeep.ts';
import type { Clock } from './time/clock.ts';
import { sleep } from './time/sleep.ts';
import { etcdVersion, tenureVersion } from './version.ts';

export interface RunningServer {
  /** Where clients reach it, with the ports that were bound. */
  readonly urls: readonly string[];
  /** Ends all streams, answers what was accepted, and closes the log. Resolves within about 5 s. Idempotent. */
  close(): Promise<void>;
  /** Resolves with the reason when the server can't go on; the process should then exit, without calling close. */
  readonly failed: Promise<Error>;
}

/** How long streams may take to end when the server closes. */
const closeGraceMs = 3_500;
/** How long a leader that stops waits until another can lead. */
const handOnMs = 500;
/** As long as etcd lets a request wait for an outcome: 5 s and two election timeouts. */
const requestTimeoutMs = 7_000;
/** How long a leader may act for leases by itself after an append of its own. */
const rightMs = 800;

export interface ServerOptions {
  readonly config: ServerConfig;
  /** Closed with the server. */
  readonly engine: LogEngine;
  readonly engineHealth: EngineHealth;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * The composition root: makes the parts in their order, connects them, and takes them down in the opposite order. A
 * server alone is a cluster of one, on a log that no other server appends to: it leads as soon as it starts.
 */
export class Server implements RunningServer {
  readonly failed: Promise<Error>;
  readonly #config: ServerConfig;
  readonly #engine: LogEngine;
  readonly #engineHealth: EngineHealth;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #run: number;
  readonly #identity: Identity;
  readonly #leaderId: string;
  readonly #metrics: ServerMetrics;
  readonly #replica: Replica;
  readonly #leadership: Leadership;
  /** Only where other servers share the log. */
  readonly #cluster: Cluster | undefined;
  readonly #door: FrontDoor;
  #resolveFailed: (error: Error) => void = () => {};
  #upkeep: Upkeep | undefined;
  #closing: Promise<void> | undefined;
  #isRegistered = false;
  #urls: readonly string[] = [];

  /** Reads the log. Rejects, with the engine closed, when it cannot be trusted or is that of another cluster. */
  static async open(options: ServerOptions): Promise<Server> {
    const { config, engine, clock, random } = options;
    try {
      if (config.clusterId === undefined) await ensureCluster(engine, { clock, random });
      else if ((await engine.tail()).index === 0) checkCluster(config.clusterId, 0n);
      const recovered = await recover(engine, decodeCommand, clock);
      checkCluster(config.clusterId, recovered.state.clusterId);
      // Loaded here: a server alone needs nothing of what servers say to each other.
      const ClusterType = engine.isShared ? (await import('./cluster/cluster.ts')).Cluster : undefined;
      return new Server(options, recovered, ClusterType);
    } catch (error) {
      await engine.close();
      throw error;
    }
  }

  private constructor(options: ServerOptions, recovered: Recovered, ClusterType: typeof Cluster | undefined) {
    const { config, engine, engineHealth, log, clock, random } = options;
    this.#config = config;
    this.#engine = engine;
    this.#engineHealth = engineHealth;
    this.#log = log;
    this.#clock = clock;
    this.#random = random;
    this.#run = random.bytes(4).readUInt32BE();
    this.failed = new Promise((resolve) => (this.#resolveFailed = resolve));
    this.#identity = this.#identify(recovered.state);
    this.#leaderId = leaderName(this.#identity.memberId, this.#run);
    const source = this.#metricSource();
    this.#metrics = new ServerMetrics({ version: tenureVersion, quotaBytes: config.quotaBackendBytes, source });
    this.#replica = this.#createReplica(recovered);
    this.#leadership = this.#createLeadership();
    this.#cluster = ClusterType === undefined ? undefined : this.#createCluster(ClusterType);
    this.#door = this.#createDoor();
  }

  get urls(): readonly string[] {
    return this.#urls;
  }

  /** Whether this server leads now. */
  get leads(): boolean {
    return this.#replica.leading;
  }

  get state(): StateMachine {
    return this.#replica.state;
  }

  /** Says that the server can't go on. */
  fail(error: Error): void {
    this.#resolveFailed(error);
  }

  async start(): Promise<void> {
    this.#replica.start();
    const { isShared, state } = this.#replica;
    if (!isShared) await this.#leadAlone();
    this.#urls = await listenAt(this.#door.transport, this.#config);
    if (isShared && state.leader === '') void this.#leadership.claimNow();
    this.#cluster?.look();
    // A name that is taken is told by the leader while the registration waits in vain.
    await Promise.race([this.#register(), this.failed.then((error) => Promise.reject(error))]);
    this.#isRegistered = true;
    this.#upkeep = this.#keepUp();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#upkeep?.stop();
    // No renewal is answered from here on, however long some calls still take: so no lease may expire either.
    await this.#handOn();
    this.#cluster?.stopServing();
    this.#door.watch.close(statusNamed('Stopped'));
    await this.#door.transport.close({ graceMs: closeGraceMs });
    // Until here what clients still wait for may be answered by the leader.
    this.#cluster?.stop();
    this.#leadership.stop(new Error('the server is stopping'));
    await this.#replica.stop();
    this.#metrics.close();
    await this.#engine.close();
  }

  /**
   * Before a leader shuts its door, it ceases to act for leases, whose holders would not reach it, and names another
   * that may lead at once.
   */
  async #handOn(): Promise<void> {
    // However that comes out, this server does not lead any more.
    const left = this.#leadership.leave(this.#cluster?.bestSuccessor).catch(() => undefined);
    const over = new AbortController();
    await Promise.race([left, sleep(this.#clock, handOnMs, over.signal)]);
    over.abort();
  }

  /** No other server appends to this log: this one leads from its start, and no command is unknown to another. */
  async #leadAlone(): Promise<void> {
    await this.#leadership.claimNow();
    if (this.#closing !== undefined) throw new Error('the server was closed while it started');
    if (!this.leads) throw await this.failed;
    if (!this.state.hasTxnLimits) await this.#replica.propose({ kind: 'setTxnLimits', limits: defaultTxnLimits });
  }

  #identify({ clusterId, members }: StateMachine): Identity {
    const known = members.find(({ name }) => name === this.#config.name);
    const memberId = known?.id ?? randomId(this.#random);
    return { clusterId, memberId, headerPrefix: responseHeaderPrefix(clusterId, memberId) };
  }

  #createReplica(recovered: Recovered): Replica {
    const { reads, snapshotCount: entries, snapshotLogBytes: bytes } = this.#config;
    return new Replica(recovered, {
      engine: this.#engine,
      metrics: this.#metrics,
      snapshots: { entries, bytes },
      run: this.#run,
      requestTimeoutMs,
      clock: this.#clock,
      stampMs: () => this.#leadership.stampMs(),
      mayReadByLease: () => reads === 'lease' && this.#leadership.mayRead(),
      problem: () => this.#problem(),
      mayAppend: () => this.#leadership.mayAppend(),
      onAppended: () => this.#leadership.appended(),
      onApplied: (entry, applied, beganMs) => this.#onApplied(entry, applied, beganMs),
      onLoaded: (position) => this.#onLoaded(position),
      slowestFollower: () => this.#cluster?.slowestFollower ?? Infinity,
      onSnapshotPutOff: (reason) => {
        this.#log.warn({ err: reason }, 'no snapshot was written, so the log goes on growing');
      },
      onDeposed: () => {
        this.#leadership.deposed();
        this.#cluster?.deposed();
      },
      onAppendFailed: (error) => this.#engineHealth.appendFailed(error),
      onFailed: (error) => this.fail(error),
    });
  }

  #createLeadership(): Leadership {
    const { heartbeatIntervalMs, electionTimeoutMs } = this.#config;
    const replica = this.#replica;
    return new Leadership({
      clock: this.#clock,
      port: () => replica,
      metrics: this.#metrics,
      memberId: this.#identity.memberId,
      leaderId: this.#leaderId,
      heartbeatIntervalMs,
      electionTimeoutMs: replica.isShared ? electionTimeoutMs : Infinity,
      rightMs,
      random: this.#random,
      onChange: (leads) => {
        if (!replica.isShared) return;
        this.#log.info({ leads, epoch: replica.state.epoch }, leads ? 'leads' : 'follows');
        if (leads) this.#cluster?.desk.leads();
      },
      onFailed: (error) => this.fail(error),
    });
  }

  #createCluster(ClusterType: typeof Cluster): Cluster {
    return new ClusterType({
      clock: this.#clock,
      random: this.#random,
      replica: this.#replica,
      leadership: this.#leadership,
      identity: this.#identity,
      run: this.#run,
      leaderId: this.#leaderId,
      electionTimeoutMs: this.#config.electionTimeoutMs,
      requestTimeoutMs,
      engineProblem: () => this.#engineHealth.problem,
      lookNow: (acknowledged) => this.#engine.lookNow?.(acknowledged),
      check: (command, payloadBytes) => this.#door.rules.check(command, payloadBytes),
      answer: (path, request, caller) => answerLocally(this.#door, path, request, caller),
      onLost: () => this.#door.requirement.lost(),
      warn: (message) => this.#log.warn({}, message),
      onFailed: (error) => this.fail(error),
    });
  }

  #createDoor(): FrontDoor {
    const cluster = this.#cluster;
    const leadership = this.#leadership;
    const replica = this.#replica;
    const alone: LeaseDesk = {
      renew: (id) => leadership.renew(id) ?? Promise.reject(statusNamed('Stopped')),
      revision: () => replica.state.currentRevision,
    };
    return openFrontDoor({
      config: this.#config,
      log: this.#log,
      clock: this.#clock,
      random: this.#random,
      replica,
      identity: this.#identity,
      desk: cluster?.desk ?? alone,
      keeper: () => {
        const { keeper } = leadership;
        if (keeper === undefined) throw statusNamed('NoLeader');
        return keeper;
      },
      cluster,
      leaderId: () => (leadership.hasLeader ? (memberOfLeader(replica.state.leader) ?? 0n) : 0n),
      onHttp: createHttpHandler({
        health: {
          alarms: () => replica.state.alarms.map(({ alarm }) => alarm),
          hasLeader: () => cluster?.reach.hasLeader ?? true,
          problem: () => this.#problem(),
          // Where reads come from memory, what can be wrong is the log, and then an append does not come back.
          read: async ({ serializable }) => (serializable ? undefined : answered(replica.logAnswers())),
        },
        metrics: this.#metrics,
        log: this.#log,
        versions: { etcd: etcdVersion, tenure: tenureVersion },
      }),
    });
  }

  /** Each server watches the history, and the one that leads compacts it. */
  #keepUp(): Upkeep {
    const { autoCompaction: policy, quotaBackendBytes: quotaBytes } = this.#config;
    const replica = this.#replica;
    return new Upkeep({
      clock: this.#clock,
      policy,
      quotaBytes,
      memberId: this.#identity.memberId,
      state: () => replica.state,
      oldestWatched: () => this.#door.watch.oldestWanted,
      isRaisedHere: () => this.#door.quota.hasRaised(),
      speaksFor: (id) => replica.leading && (this.#cluster?.reach.isUnreachable(id) ?? false),
      leads: () => replica.leading,
      propose: (command) => replica.propose(command),
      onCompacted: (revision, outcome) => this.#log.info({ revision, outcome }, 'compacted the history by itself'),
    });
  }

  #problem(): ClientReason | undefined {
    return this.#cluster?.reach.problem;
  }

  /** Runs inside apply, before the entry's proposals are answered: leases first, then who watches. */
  #onApplied(entry: Entry, applied: Applied, beganMs: number): void {
    this.#engineHealth.entryTaken();
    this.#leadership.applied(entry, applied);
    if (applied.leaseChanges.length > 0) this.#metrics.leasesChanged(applied.leaseChanges);
    if (applied.lastRevision >= applied.firstRevision) this.#door.watch.revisionAdvanced(beganMs);
    this.#cluster?.applied(entry);
    const { commands } = entry;
    if (commands[0]?.kind === 'claim' || commands.some(({ kind }) => kind === 'removeMember')) this.#registerAnew();
  }

  /** Nobody would find a leader that is no member: one that was removed while it runs registers anew. */
  #registerAnew(): void {
    if (!this.#isRegistered || !this.leads) return;
    this.#register().catch((error: unknown) => {
      // Without an outcome the next leader is as well known as this one was; a name that is taken is another's.
      if (error instanceof Error && !(error instanceof ProposalError)) this.fail(error);
    });
  }

  /** Watches go on in the history that the snapshot holds; those that need what it does not hold end as compacted. */
  #onLoaded({ index }: Position): void {
    this.#log.warn({ index }, 'this server lagged behind the log and goes on behind a snapshot');
    this.#leadership.loaded();
    this.#door.watch.revisionAdvanced();
    this.#cluster?.look();
  }

  /** Makes this member known, or its new addresses; the log says nothing when nothing changed. */
  async #register(): Promise<void> {
    const { memberId: id } = this.#identity;
    const { name, advertiseClientUrls } = this.#config;
    const clientUrls = advertiseClientUrls.length > 0 ? advertiseClientUrls : this.#urls;
    const known = this.state.members.find((member) => member.id === id);
    if (known !== undefined && known.clientUrls.join() === clientUrls.join()) return;
    const response = await this.#replica.propose({ kind: 'registerMember', id, name, clientUrls });
    // Another server that was started at the same moment under this name has registered it first.
    if (response.kind === 'error') throw new Error(nameTakenText);
  }

  #metricSource(): MetricSource {
    const tracker = (): LeaderLeaseTracker | undefined => this.#leadership.tracked?.tracker;
    return {
      leasesLive: () => tracker()?.liveCount ?? 0,
      leasesDated: () => (tracker()?.size ?? 0) - (tracker()?.liveCount ?? 0),
      watchers: () => this.#door.watch.counts.watchers,
      watchStreams: () => this.#door.watch.counts.streams,
      keys: () => this.state.keyCount,
      revision: () => this.state.currentRevision,
      compactRevision: () => this.state.compactRevision,
      stateBytes: () => this.state.sizeBytes,
      logBytes: () => this.#engine.sizeBytes(),
      appliedIndex: () => this.state.appliedIndex,
      isLeader: () => this.leads,
    };
  }
}

/** Runs a call that a follower has passed on through the same handler that answers clients here. */
async function answerLocally(door: FrontDoor, path: string, request: Buffer, by: Caller): Promise<Buffer> {
  const handler = leaderOnlyPaths.has(path) ? door.routes.get(path) : undefined;
  if (handler?.kind !== 'unary') throw statusNamed('NoLeader');
  const call = { path, metadata: {}, deadlineMs: Infinity, connection: by.connection, signal: by.signal };
  return builtReply(await handler.handle(request, call));
}
