import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Applied, Entry, StateMachine } from '@tenure/core';
import { responseHeaderPrefix } from '@tenure/codec';
import type { ServerConfig } from './config/server-config.ts';
import type { EngineHealth } from './engines/engine-health.ts';
import type { LogEngine, Position } from './engines/log-engine.ts';
import { listenAt, openFrontDoor, type FrontDoor } from './front-door.ts';
import type { Identity } from './grpc/identity.ts';
import { leaderOnlyPaths } from './grpc/routes.ts';
import { answered, statusNamed } from './grpc/status-of.ts';
import type { Caller } from './grpc/sliced-work.ts';
import { builtReply, type MethodHandler } from './grpc/transport/transport.ts';
import { createHttpHandler } from './http/http-handler.ts';
import { ServerMetrics, type MetricSource } from './http/server-metrics.ts';
import { LeaderMonitor } from './leadership/leader-monitor.ts';
import type { LeaseKeeper } from './leadership/lease-keeper.ts';
import { SharedLeadership } from './leadership/shared-leadership.ts';
import { systemClock } from './leadership/system-clock.ts';
import type { Logger } from './logging/logger.ts';
import { ClusterReach } from './peer/cluster-reach.ts';
import { ForwardingDesk } from './peer/forwarding-desk.ts';
import { LeaderCalls } from './peer/leader-calls.ts';
import { LeaderFinder, leaderName, memberOfLeader } from './peer/leader-finder.ts';
import { nameTakenText } from './peer/name-taken-text.ts';
import { peerLinkPath, PeerService } from './peer/peer-service.ts';
import { checkCluster } from './replica/check-cluster.ts';
import { ensureCluster } from './replica/ensure-cluster.ts';
import { ProposalError } from './replica/proposal-error.ts';
import { SharedReplica } from './replica/shared-replica.ts';
import { Upkeep } from './replica/upkeep.ts';
import type { RunningServer } from './server.ts';
import { etcdVersion, tenureVersion } from './version.ts';

/** How long streams may take to end when the server closes. */
const closeGraceMs = 3_500;
/** How long a leader that stops waits until another can lead. */
const handOnMs = 500;
/** As long as etcd lets a request wait for an outcome: 5 s and two election timeouts. */
const requestTimeoutMs = 7_000;
/** How long a leader may act for leases by itself after an append of its own. */
const rightMs = 800;

/** One of several servers on a log that an engine shares between them. */
export class SharedServer implements RunningServer {
  readonly failed: Promise<Error>;
  readonly #config: ServerConfig;
  readonly #engine: LogEngine;
  readonly #engineHealth: EngineHealth;
  readonly #log: Logger;
  readonly #run = randomBytes(4).readUInt32BE();
  #fail: (error: Error) => void = () => {};
  #replica: SharedReplica | undefined;
  #leadership: SharedLeadership | undefined;
  #metrics: ServerMetrics | undefined;
  #finder: LeaderFinder | undefined;
  #desk: ForwardingDesk | undefined;
  #peers: PeerService | undefined;
  #reach: ClusterReach | undefined;
  #monitor: LeaderMonitor | undefined;
  #door: FrontDoor | undefined;
  #upkeep: Upkeep | undefined;
  #closing: Promise<void> | undefined;
  /** Known once this server is a member. */
  #memberId: bigint | undefined;
  #urls: readonly string[] = [];

  /** Takes over the engine: it is closed with the server. */
  constructor(config: ServerConfig, engine: LogEngine, engineHealth: EngineHealth, log: Logger) {
    this.#config = config;
    this.#engine = engine;
    this.#engineHealth = engineHealth;
    this.#log = log;
    this.failed = new Promise((resolve) => (this.#fail = resolve));
  }

  get urls(): readonly string[] {
    return this.#urls;
  }

  /** Whether this server leads now. */
  get leads(): boolean {
    return this.#replica?.leading ?? false;
  }

  get state(): StateMachine {
    if (this.#replica === undefined) throw new Error('the server has not been started');
    return this.#replica.state;
  }

  async start(): Promise<void> {
    const { clusterId } = this.#config;
    if (clusterId === undefined) await ensureCluster(this.#engine);
    else if ((await this.#engine.tail()).index === 0) checkCluster(clusterId, 0n);
    const replica = await this.#openReplica();
    await replica.whenApplied(1);
    checkCluster(clusterId, replica.state.clusterId);
    const identity = this.#identity(replica);
    const leadership = this.#lead(replica, identity.memberId);
    this.#desk = new ForwardingDesk({
      renewHere: (id) => leadership.renew(id),
      revision: () => replica.state.currentRevision,
    });
    this.#finder = this.#createFinder(replica, this.#desk, identity.memberId);
    this.#reach = this.#createReach(leadership, this.#finder, identity.memberId);
    this.#door = this.#openDoor(replica, leadership, this.#desk, this.#reach, identity);
    this.#monitor = this.#watchLeader(this.#reach, this.#desk, this.#door);
    this.#urls = await listenAt(this.#door.transport, this.#config);
    if (replica.state.leader === '') leadership.claimFirst();
    this.#finder.look();
    // A name that is taken is told by the leader while the registration waits in vain.
    await Promise.race([
      this.#register(replica, identity.memberId),
      this.failed.then((error) => Promise.reject(error)),
    ]);
    this.#memberId = identity.memberId;
    this.#upkeep = this.#keepUp(replica, this.#door, this.#reach, identity.memberId);
  }

  /** Each server watches the history, and the one that leads compacts it. */
  #keepUp(replica: SharedReplica, door: FrontDoor, reach: ClusterReach, memberId: bigint): Upkeep {
    const { autoCompaction: policy, quotaBackendBytes: quotaBytes } = this.#config;
    return new Upkeep({
      policy,
      quotaBytes,
      memberId,
      state: () => replica.state,
      oldestWatched: () => door.watch.oldestWanted,
      isRaisedHere: () => door.quota.hasRaised(),
      speaksFor: (id) => replica.leading && reach.isUnreachable(id),
      leads: () => replica.leading,
      propose: (command) => replica.propose(command),
      onCompacted: (revision, outcome) => this.#log.info({ revision, outcome }, 'compacted the history by itself'),
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const stopping = new Error('the server is stopping');
    this.#upkeep?.stop();
    this.#monitor?.stop();
    await this.#handOn();
    this.#desk?.stop();
    this.#door?.watch.close(statusNamed('Stopped'));
    this.#peers?.stop();
    await this.#door?.transport.close({ graceMs: closeGraceMs });
    // Until here what clients still wait for may be answered by the leader.
    this.#finder?.stop();
    this.#leadership?.stop(stopping);
    await this.#replica?.stop();
    this.#metrics?.close();
    await this.#engine.close();
  }

  /**
   * Before a leader shuts its door, it ceases to act for leases, whose holders would not reach it, and names another
   * that may lead at once: the one that is linked and has applied most of the log.
   */
  async #handOn(): Promise<void> {
    const [next] = [...(this.#peers?.peers ?? [])].sort((a, b) => b.appliedIndex - a.appliedIndex);
    // However that comes out, this server does not lead any more.
    const left = this.#leadership?.leave(next?.memberId).catch(() => undefined);
    await Promise.race([left, delay(handOnMs, undefined, { ref: false })]);
  }

  async #openReplica(): Promise<SharedReplica> {
    const metrics = new ServerMetrics({
      version: tenureVersion,
      quotaBytes: this.#config.quotaBackendBytes,
      source: this.#metricSource(),
    });
    this.#metrics = metrics;
    this.#replica = await SharedReplica.open({
      engine: this.#engine,
      metrics,
      snapshots: { entries: this.#config.snapshotCount, bytes: this.#config.snapshotLogBytes },
      run: this.#run,
      requestTimeoutMs,
      monotonicMs: () => systemClock.monotonicMs(),
      stampMs: () => this.#leadership?.stampMs() ?? 0,
      mayReadByLease: () => this.#config.reads === 'lease' && (this.#leadership?.mayRead() ?? false),
      problem: () => this.#reach?.problem ?? this.#engineHealth.problem,
      mayAppend: () => this.#leadership?.mayAppend() ?? false,
      onAppended: () => this.#leadership?.appended(),
      onApplied: (entry, applied) => this.#onApplied(entry, applied),
      onLoaded: (position) => this.#onLoaded(position),
      slowestFollower: () => Math.min(...(this.#peers?.peers ?? []).map(({ appliedIndex }) => appliedIndex)),
      onSnapshotPutOff: (reason) => {
        this.#log.warn({ err: reason }, 'no snapshot was written, so the log goes on growing');
      },
      onDeposed: () => this.#deposed(),
      onAppendFailed: (error) => this.#engineHealth.appendFailed(error),
      onFailed: (error) => this.#fail(error),
    });
    return this.#replica;
  }

  #lead(replica: SharedReplica, memberId: bigint): SharedLeadership {
    this.#leadership = new SharedLeadership({
      clock: systemClock,
      port: () => replica,
      metrics: this.#metrics as ServerMetrics,
      memberId,
      leaderId: leaderName(memberId, this.#run),
      heartbeatIntervalMs: this.#config.heartbeatIntervalMs,
      electionTimeoutMs: this.#config.electionTimeoutMs,
      rightMs,
      random: () => Math.random(),
      onChange: (leads) => {
        this.#log.info({ leads, epoch: replica.state.epoch }, leads ? 'leads' : 'follows');
        if (leads) this.#desk?.leads();
      },
      onFailed: (error) => this.#fail(error),
    });
    return this.#leadership;
  }

  #createFinder(replica: SharedReplica, desk: ForwardingDesk, memberId: bigint): LeaderFinder {
    return new LeaderFinder({
      replica,
      memberId,
      run: this.#run,
      leaderId: leaderName(memberId, this.#run),
      onRenewed: (id, ttlMs, revision) => desk.renewed(id, ttlMs, revision),
      onRenewalRefused: (id) => desk.refused(id),
      onLinked: (connection) => desk.linked(connection),
      lookNow: (acknowledged) => this.#engine.lookNow?.(acknowledged),
      warn: (message) => this.#log.warn({}, message),
      onNameTaken: (message) => this.#fail(new Error(message)),
    });
  }

  #createReach(leadership: SharedLeadership, finder: LeaderFinder, memberId: bigint): ClusterReach {
    return new ClusterReach({
      memberId,
      leading: () => (leadership.leads ? this.#peers?.view : undefined),
      hearsLeader: () => leadership.hasLeader,
      following: () => ({ isLinked: finder.connection !== undefined, view: finder.view, problem: finder.problem }),
      engineProblem: () => this.#engineHealth.problem,
      isLost: () => this.#monitor?.isLost ?? false,
    });
  }

  #watchLeader(reach: ClusterReach, desk: ForwardingDesk, door: FrontDoor): LeaderMonitor {
    return new LeaderMonitor({
      clock: systemClock,
      electionTimeoutMs: this.#config.electionTimeoutMs,
      hasLeader: () => reach.hasLeader,
      onLost: () => {
        desk.lost();
        door.requirement.lost();
      },
    });
  }

  #onApplied(entry: Entry, applied: Applied): void {
    this.#engineHealth.entryTaken();
    this.#leadership?.applied(entry, applied);
    if (applied.leaseChanges.length > 0) this.#metrics?.leasesChanged(applied.leaseChanges);
    if (applied.lastRevision >= applied.firstRevision) this.#door?.watch.revisionAdvanced();
    const kind = entry.commands[0]?.kind;
    if (kind === 'claim' || entry.commands.some((command) => command.kind === 'registerMember')) this.#finder?.look();
    if (kind === 'claim' || entry.commands.some((command) => command.kind === 'removeMember')) this.#registerAnew();
  }

  /** Nobody would find a leader that is no member: one that was removed while it runs registers anew. */
  #registerAnew(): void {
    const [id, replica] = [this.#memberId, this.#replica];
    if (id === undefined || replica?.leading !== true) return;
    this.#register(replica, id).catch((error: unknown) => {
      // Without an outcome the next leader is as well known as this one was; a name that is taken is another's.
      if (error instanceof Error && !(error instanceof ProposalError)) this.#fail(error);
    });
  }

  /** Watches go on in the history that the snapshot holds; those that need what it does not hold end as compacted. */
  #onLoaded({ index }: Position): void {
    this.#log.warn({ index }, 'this server lagged behind the log and goes on behind a snapshot');
    this.#leadership?.loaded();
    this.#door?.watch.revisionAdvanced();
    this.#finder?.look();
  }

  #deposed(): void {
    this.#peers?.closeAll();
    this.#leadership?.deposed();
    this.#finder?.look();
  }

  #identity(replica: SharedReplica): Identity {
    const { clusterId, members } = replica.state;
    const known = members.find(({ name }) => name === this.#config.name);
    const memberId = known?.id ?? randomBytes(8).readBigUInt64BE() | 1n;
    return { clusterId, memberId, headerPrefix: responseHeaderPrefix(clusterId, memberId) };
  }

  #openDoor(
    replica: SharedReplica,
    leadership: SharedLeadership,
    desk: ForwardingDesk,
    reach: ClusterReach,
    identity: Identity,
  ): FrontDoor {
    const keeper = (): LeaseKeeper => {
      const current = leadership.keeper;
      if (current === undefined) throw statusNamed('NoLeader');
      return current;
    };
    const peers = new PeerService({
      replica,
      memberId: () => identity.memberId,
      leaderId: leaderName(identity.memberId, this.#run),
      renew: (id) => leadership.renew(id),
      check: (command, payloadBytes) => this.#door?.rules.check(command, payloadBytes),
      answer: (path, request, caller) => answerLocally(this.#door, path, request, caller),
    });
    this.#peers = peers;
    const link: MethodHandler = { kind: 'bidi', handle: (call) => peers.handle(call) };
    const leaderCalls = new LeaderCalls({
      replica,
      connection: () => this.#finder?.connection,
      problem: () => reach.problem,
      monotonicMs: () => systemClock.monotonicMs(),
      timeoutMs: requestTimeoutMs,
    });
    return openFrontDoor({
      config: this.#config,
      log: this.#log,
      replica,
      identity,
      desk,
      keeper,
      reach,
      leaderId: () => (leadership.hasLeader ? (memberOfLeader(replica.state.leader) ?? 0n) : 0n),
      leaderOnly: (path, request, local) => leaderCalls.answer(path, request, local),
      lead: { leads: () => replica.leading, resign: (target) => leadership.resign(target) },
      ownRoutes: new Map([[peerLinkPath, link]]),
      peerPath: peerLinkPath,
      onHttp: createHttpHandler({
        health: {
          alarms: () => replica.state.alarms.map(({ alarm }) => alarm),
          hasLeader: () => reach.hasLeader,
          problem: () => reach.problem,
          read: async ({ serializable }) => (serializable ? undefined : answered(replica.linearize())),
        },
        metrics: this.#metrics as ServerMetrics,
        log: this.#log,
        versions: { etcd: etcdVersion, tenure: tenureVersion },
      }),
    });
  }

  async #register(replica: SharedReplica, id: bigint): Promise<void> {
    const { name, advertiseClientUrls } = this.#config;
    const clientUrls = advertiseClientUrls.length > 0 ? advertiseClientUrls : this.#urls;
    const known = replica.state.members.find((member) => member.id === id);
    if (known !== undefined && known.clientUrls.join() === clientUrls.join()) return;
    const response = await replica.propose({ kind: 'registerMember', id, name, clientUrls });
    // Another server that was started at the same moment under this name has registered it first.
    if (response.kind === 'error') throw new Error(nameTakenText);
  }

  #metricSource(): MetricSource {
    const state = (): StateMachine | undefined => this.#replica?.state;
    const tracker = () => this.#leadership?.tracked?.tracker;
    return {
      leasesLive: () => tracker()?.liveCount ?? 0,
      leasesDated: () => (tracker()?.size ?? 0) - (tracker()?.liveCount ?? 0),
      watchers: () => this.#door?.watch.counts.watchers ?? 0,
      watchStreams: () => this.#door?.watch.counts.streams ?? 0,
      keys: () => state()?.keyCount ?? 0,
      revision: () => state()?.currentRevision ?? 0,
      compactRevision: () => state()?.compactRevision ?? 0,
      stateBytes: () => state()?.sizeBytes ?? 0,
      logBytes: () => this.#engine.sizeBytes(),
      appliedIndex: () => state()?.appliedIndex ?? 0,
      isLeader: () => this.leads,
    };
  }
}

/** Runs a call that a follower has passed on through the same handler that answers clients here. */
async function answerLocally(door: FrontDoor | undefined, path: string, request: Buffer, by: Caller): Promise<Buffer> {
  const handler = leaderOnlyPaths.has(path) ? door?.routes.get(path) : undefined;
  if (handler?.kind !== 'unary') throw statusNamed('NoLeader');
  const call = { path, metadata: {}, deadlineMs: Infinity, connection: by.connection, signal: by.signal };
  return builtReply(await handler.handle(request, call));
}
