import { defaultTxnLimits, type StateMachine } from '@tenure/core';
import { responseHeaderPrefix } from '@tenure/codec';
import { Authentication } from './authentication.ts';
import type { Cluster } from './cluster/cluster.ts';
import { createApiServer, listenAt, type ApiServer } from './api-server.ts';
import type { Identity } from './api/identity.ts';
import { answered, statusNamed } from './api/status-of.ts';
import { PeerPort } from './peer-port.ts';
import { createGrpcServer } from '@tenure/grpc-server';
import { createHttpHandler } from './http/http-handler.ts';
import { ServerMetrics, type MetricSource } from './http/server-metrics.ts';
import { Leadership } from './leadership/leadership.ts';
import { LeadershipDriver } from './leadership/leadership-driver.ts';
import type { DeadlineTracker } from './leases/deadline-tracker.ts';
import type { RenewalHandler } from './api/lease-service.ts';
import { leaderName, memberOfLeader } from './cluster/link/member-name.ts';
import { MemberRegistration } from './cluster/member-registration.ts';
import { randomId } from './random/random-id.ts';
import { checkCluster } from './replica/check-cluster.ts';
import type { ClientReason } from './replica/client-reason.ts';
import { ensureCluster } from './replica/ensure-cluster.ts';
import { decodeCommand } from './replica/command-codec.ts';
import { recover, type Recovered } from './replica/recovery.ts';
import type { ReplicaFact } from './replica/replica-fact.ts';
import { Replica } from './replica/replica.ts';
import { BackgroundMaintenance } from './replica/background-maintenance.ts';
import type { RunningServer, ServerOptions } from './server-options.ts';
import { sleep } from './time/sleep.ts';
import { etcdVersion, tenureVersion } from './version.ts';

/** How long streams may take to end when the server closes. */
const closeGraceMs = 3_500;
/** How long a stopping leader waits until another server can lead. */
const handOnMs = 500;
/** As etcd limits a request: 5 s and two election timeouts. */
const requestTimeoutMs = 7_000;
/** How long a leader may act for leases without the log after its last append. */
const leaderLeaseMs = 800;

/**
 * The composition root: creates the parts in order, connects them, and closes them in reverse order. A server alone is
 * a cluster of one, on a log that no other server appends to: it leads as soon as it starts.
 *
 * Reason for length: all parts of a server are connected here.
 */
export class Server implements RunningServer {
  readonly failed: Promise<Error>;
  readonly #options: ServerOptions;
  readonly #run: number;
  readonly #identity: Identity;
  readonly #leaderId: string;
  readonly #metrics: ServerMetrics;
  readonly #replica: Replica;
  readonly #leadership: Leadership;
  /** Public so that the simulation can observe the renewals that it answers. */
  readonly driver: LeadershipDriver;
  /** Only on a shared log. */
  readonly #cluster: Cluster | undefined;
  readonly #api: ApiServer;
  /** Only if other servers have addresses of their own. */
  readonly #peerPort: PeerPort | undefined;
  readonly #registration: MemberRegistration;
  readonly #authentication: Authentication;
  #resolveFailed: (error: Error) => void = () => {};
  #maintenance: BackgroundMaintenance | undefined;
  #closing: Promise<void> | undefined;
  #urls: readonly string[] = [];

  /** Reads the log. Rejects, with the engine closed, when the log is damaged or belongs to another cluster. */
  static async open(options: ServerOptions): Promise<Server> {
    const { config, engine, clock, random } = options;
    try {
      if (config.clusterId === undefined) await ensureCluster(engine, { clock, random });
      else if ((await engine.tail()).index === 0) checkCluster(config.clusterId, 0n);
      const recovered = await recover(engine, decodeCommand, clock);
      checkCluster(config.clusterId, recovered.state.clusterId);
      // Imported here: a server alone does not need the code between servers.
      const ClusterType = engine.isShared ? (await import('./cluster/cluster.ts')).Cluster : undefined;
      return new Server(options, recovered, ClusterType);
    } catch (error) {
      await engine.close();
      throw error;
    }
  }

  private constructor(options: ServerOptions, recovered: Recovered, ClusterType: typeof Cluster | undefined) {
    this.#options = options;
    this.#run = options.random.bytes(4).readUInt32BE();
    this.failed = new Promise((resolve) => (this.#resolveFailed = resolve));
    this.#identity = this.#identify(recovered.state);
    this.#leaderId = leaderName(this.#identity.memberId, this.#run);
    const { quotaBackendBytes: quotaBytes } = options.config;
    this.#metrics = new ServerMetrics({ version: tenureVersion, quotaBytes, source: this.#metricSource() });
    this.#leadership = this.#createLeadership(recovered);
    this.#replica = this.#createReplica(recovered);
    this.driver = this.#createDriver();
    this.#cluster = ClusterType === undefined ? undefined : this.#createCluster(ClusterType);
    const { clock, random, passwords } = options;
    this.#authentication = new Authentication({
      config: options.config,
      replica: this.#replica,
      clock,
      random,
      passwords,
    });
    this.#api = this.#createApiServer();
    this.#peerPort = this.#createPeerPort();
    this.#registration = this.#createRegistration();
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

  /** Reports that the server can't continue. */
  fail(error: Error): void {
    this.#resolveFailed(error);
  }

  async start(): Promise<void> {
    this.#replica.start();
    const { isShared, state } = this.#replica;
    if (!isShared) await this.#leadAlone();
    this.#urls = await listenAt(this.#api.transport, this.#options.config.listenClientUrls, this.#options.clientTls);
    await this.#peerPort?.listen();
    if (isShared && state.leader === '') void this.driver.claimNow();
    this.#cluster?.look();
    // If another server has this name, the leader reports it while the registration is still pending.
    await Promise.race([this.#registration.register(), this.failed.then((error) => Promise.reject(error))]);
    this.#maintenance = this.#startMaintenance();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#maintenance?.stop();
    this.#registration.stop();
    // From here on no renewal is answered, however long some calls still take, so no lease may expire either.
    await this.#transferLeadership();
    this.#cluster?.stopServing();
    this.#api.watch.close(statusNamed('Stopped'));
    const transports = [this.#api.transport, ...(this.#peerPort === undefined ? [] : [this.#peerPort])];
    await Promise.all(transports.map((each) => each.close({ graceMs: closeGraceMs })));
    this.#options.clientTls?.credentials.close();
    this.#options.peerTls?.close();
    // Until here the leader may still answer the calls that clients wait for.
    this.#cluster?.stop();
    this.driver.stop(new Error('the server is stopping'));
    this.#authentication.stop();
    await this.#replica.stop();
    this.#metrics.close();
    this.#api.audit?.stop();
    await this.#options.audit?.close();
    await this.#options.engine.close();
  }

  /**
   * Before a leader closes its sockets, it stops acting for leases, whose holders could not reach it any more, and
   * names a successor that may lead at once.
   */
  async #transferLeadership(): Promise<void> {
    // With any outcome, this server no longer leads.
    const left = this.driver.leave(this.#cluster?.bestSuccessor).catch(() => undefined);
    const over = new AbortController();
    await Promise.race([left, sleep(this.#options.clock, handOnMs, over.signal)]);
    over.abort();
  }

  /** No other server appends to this log: this one leads from its start, and knows every kind of command in it. */
  async #leadAlone(): Promise<void> {
    await this.driver.claimNow();
    if (this.#closing !== undefined) throw new Error('the server was closed while it started');
    if (!this.leads) throw await this.failed;
    if (!this.state.hasTxnLimits) await this.#replica.propose({ kind: 'setTxnLimits', limits: defaultTxnLimits });
  }

  #identify({ clusterId, members }: StateMachine): Identity {
    const known = members.find(({ name }) => name === this.#options.config.name);
    const memberId = known?.id ?? randomId(this.#options.random);
    return { clusterId, memberId, headerPrefix: responseHeaderPrefix(clusterId, memberId) };
  }

  #createReplica(recovered: Recovered): Replica {
    const { snapshotCount: entries, snapshotLogBytes: bytes } = this.#options.config;
    return new Replica(recovered, {
      engine: this.#options.engine,
      metrics: this.#metrics,
      snapshots: { entries, bytes },
      run: this.#run,
      requestTimeoutMs,
      maxPendingCommands: this.#options.maxPendingCommands,
      clock: this.#options.clock,
      authority: this.#leadership,
      readsByLease: this.#options.config.reads === 'lease',
      problem: () => this.#problem(),
      refusal: (command) => this.#api.rules.versionRefusal(command),
      slowestFollower: () => this.#cluster?.slowestFollower ?? Infinity,
      onFact: (fact) => this.#told(fact),
    });
  }

  #createLeadership({ state }: Recovered): Leadership {
    const { heartbeatIntervalMs, electionTimeoutMs } = this.#options.config;
    const { isShared } = this.#options.engine;
    return new Leadership({
      clock: this.#options.clock,
      random: this.#options.random,
      state,
      isShared,
      metrics: this.#metrics,
      memberId: this.#identity.memberId,
      leaderId: this.#leaderId,
      heartbeatIntervalMs,
      electionTimeoutMs: isShared ? electionTimeoutMs : Infinity,
      leaderLeaseMs,
    });
  }

  #createDriver(): LeadershipDriver {
    const replica = this.#replica;
    return new LeadershipDriver({
      leadership: this.#leadership,
      replica,
      clock: this.#options.clock,
      onChange: (leads) => {
        if (!replica.isShared) return;
        this.#options.log.info({ leads, epoch: replica.state.epoch }, leads ? 'leads' : 'follows');
        if (leads) this.#cluster?.forwarder.leads();
      },
      onFailed: (error) => this.fail(error),
    });
  }

  #createCluster(ClusterType: typeof Cluster): Cluster {
    return new ClusterType({
      clock: this.#options.clock,
      random: this.#options.random,
      replica: this.#replica,
      leadership: this.#leadership,
      driver: this.driver,
      open: this.#options.network?.openLeaderStream,
      tls: () => this.#options.peerTls?.dial() ?? {},
      identity: this.#identity,
      run: this.#run,
      leaderId: this.#leaderId,
      electionTimeoutMs: this.#options.config.electionTimeoutMs,
      hasPeerPort: this.#options.config.listenPeerUrls.length > 0,
      requestTimeoutMs,
      engineProblem: () => this.#options.engineHealth.problem,
      lookNow: (acknowledged) => this.#options.engine.lookNow?.(acknowledged),
      check: (command, payloadBytes) => this.#api.rules.check(command, payloadBytes),
      answer: (path, request, caller) => this.#api.answer(path, request, caller),
      onLost: () => this.#api.requirement.lost(),
      warn: (message) => this.#options.log.warn({}, message),
      onFailed: (error) => this.fail(error),
    });
  }

  #createRegistration(): MemberRegistration {
    const { name, advertiseClientUrls } = this.#options.config;
    return new MemberRegistration({
      clock: this.#options.clock,
      replica: this.#replica,
      memberId: this.#identity.memberId,
      name,
      clientUrls: () => (advertiseClientUrls.length > 0 ? advertiseClientUrls : this.#urls),
      peerUrls: () => this.#peerPort?.urls ?? [],
      warn: (message) => this.#options.log.warn({}, message),
      onFailed: (error) => this.fail(error),
    });
  }

  #createPeerPort(): PeerPort | undefined {
    const { config, log, network, peerTls: tls } = this.#options;
    const cluster = this.#cluster;
    if (cluster === undefined || config.listenPeerUrls.length === 0) return undefined;
    return new PeerPort({
      cluster,
      config,
      log,
      tls,
      createTransport: network?.createTransport ?? createGrpcServer,
    });
  }

  #createApiServer(): ApiServer {
    const cluster = this.#cluster;
    const leadership = this.#leadership;
    const replica = this.#replica;
    const alone: RenewalHandler = {
      renew: (id, by) => this.driver.renew(id, by) ?? Promise.reject(statusNamed('Stopped')),
      revision: () => replica.state.currentRevision,
    };
    return createApiServer({
      config: this.#options.config,
      log: this.#options.log,
      clock: this.#options.clock,
      random: this.#options.random,
      replica,
      identity: this.#identity,
      renewals: cluster?.forwarder ?? alone,
      authentication: this.#authentication,
      audit: this.#options.audit,
      lessor: () => {
        const { lessor } = leadership;
        if (lessor === undefined) throw statusNamed('NoLeader');
        return lessor;
      },
      createTransport: this.#options.network?.createTransport ?? createGrpcServer,
      cluster,
      leaderId: () => (leadership.hasLeader ? (memberOfLeader(replica.state.leader) ?? 0n) : 0n),
      onHttp: createHttpHandler({
        health: {
          alarms: () => replica.state.alarms.map(({ alarm }) => alarm),
          hasLeader: () => cluster?.reach.hasLeader ?? true,
          problem: () => this.#problem(),
          // Where reads come from memory, only the log can fail, and then an append does not return.
          read: async ({ serializable }) => (serializable ? undefined : answered(replica.logAnswers())),
        },
        metrics: this.#metrics,
        log: this.#options.log,
        versions: { etcd: etcdVersion, tenure: tenureVersion },
        openApi,
      }),
    });
  }

  /** Every server checks the history, and only the leader compacts it. */
  #startMaintenance(): BackgroundMaintenance {
    const { autoCompaction: policy, quotaBackendBytes: quotaBytes } = this.#options.config;
    const replica = this.#replica;
    return new BackgroundMaintenance({
      clock: this.#options.clock,
      policy,
      quotaBytes,
      memberId: this.#identity.memberId,
      state: () => replica.state,
      oldestWatched: () => this.#api.watch.oldestWanted,
      isRaisedHere: () => this.#api.quota.hasRaised(),
      speaksFor: (id) => replica.leading && (this.#cluster?.reach.isUnreachable(id) ?? false),
      leads: () => replica.leading,
      propose: (command) => replica.propose(command),
      onCompacted: (revision, outcome) =>
        this.#options.log.info({ revision, outcome }, 'compacted the history automatically'),
    });
  }

  #problem(): ClientReason | undefined {
    return this.#cluster?.reach.problem;
  }

  /** Passes a fact of the replica to all parts, the leadership first: leases change before watches see an entry. */
  #told(fact: ReplicaFact): void {
    switch (fact.kind) {
      case 'applied':
        this.#options.engineHealth.entryTaken();
        this.driver.tell(fact);
        this.#onApplied(fact);
        break;
      case 'appended':
        this.driver.tell(fact);
        break;
      case 'loaded':
        this.#options.log.warn(
          { index: fact.position.index },
          'this server lagged behind the log and continues from a snapshot',
        );
        this.driver.tell(fact);
        // Watches continue in the history of the snapshot; those that need older history end as compacted.
        this.#api.watch.revisionAdvanced();
        this.#cluster?.look();
        break;
      case 'deposed':
        this.driver.tell(fact);
        this.#cluster?.deposed();
        break;
      case 'snapshotPutOff':
        this.#options.log.warn({ err: fact.reason }, 'no snapshot was written, so the log keeps growing');
        break;
      case 'appendFailed':
        this.#options.engineHealth.appendFailed(fact.error);
        break;
      case 'failed':
        this.fail(fact.error);
        break;
    }
  }

  #onApplied({ entry, applied, beganMs }: Extract<ReplicaFact, { kind: 'applied' }>): void {
    if (applied.leaseChanges.length > 0) this.#metrics.leasesChanged(applied.leaseChanges);
    if (applied.lastRevision >= applied.firstRevision) this.#api.watch.revisionAdvanced(beganMs);
    else this.#api.watch.recheckPermissions(beganMs);
    this.#cluster?.applied(entry);
    this.#registration.applied(entry);
    this.#authentication.applied(entry, applied);
  }

  #metricSource(): MetricSource {
    const tracker = (): DeadlineTracker | undefined => this.#leadership.tracked?.tracker;
    return {
      leasesInMemory: () => tracker()?.inMemoryCount ?? 0,
      leasesCheckpointed: () => (tracker()?.size ?? 0) - (tracker()?.inMemoryCount ?? 0),
      watchers: () => this.#api.watch.counts.watchers,
      watchStreams: () => this.#api.watch.counts.streams,
      keys: () => this.state.keyCount,
      revision: () => this.state.currentRevision,
      compactRevision: () => this.state.compactRevision,
      stateBytes: () => this.state.sizeBytes,
      logBytes: () => this.#options.engine.sizeBytes(),
      appliedIndex: () => this.state.appliedIndex,
      isLeader: () => this.leads,
    };
  }
}

/** Imported here: hardly any server is asked for it. */
async function openApi(): Promise<string> {
  const { openApiDocument } = await import('./gateway/open-api.ts');
  return JSON.stringify(openApiDocument(tenureVersion));
}
