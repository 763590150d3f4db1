import { randomBytes, randomUUID } from 'node:crypto';
import { defaultTxnLimits, type Applied, type Entry, type StateMachine } from '@tenure/core';
import { responseHeaderPrefix } from '@tenure/codec';
import type { ServerConfig } from './config/server-config.ts';
import { EngineHealth, type EngineState } from './engines/engine-health.ts';
import { engineTroubles } from './engines/engine-trouble.ts';
import { openFileEngine } from './engines/file/file-engine.ts';
import type { LogEngine } from './engines/log-engine.ts';
import { memoryEngine } from './engines/memory/memory-engine.ts';
import { openSharedEngine } from './engines/shared-engine.ts';
import type { Identity } from './grpc/identity.ts';
import { answered, statusNamed } from './grpc/status-of.ts';
import type { Transport } from './grpc/transport/http2-transport.ts';
import type { WatchService } from './grpc/watch/watch-service.ts';
import { listenAt, openFrontDoor, type FrontDoor } from './front-door.ts';
import { createHttpHandler } from './http/http-handler.ts';
import { ServerMetrics, type MetricSource } from './http/server-metrics.ts';
import { Leadership } from './leadership/leadership.ts';
import type { LeaseDesk } from './leadership/lease-desk.ts';
import type { LeaseKeeper } from './leadership/lease-keeper.ts';
import { systemClock } from './leadership/system-clock.ts';
import { createLogger, type Logger } from './logging/logger.ts';
import { checkCluster } from './replica/check-cluster.ts';
import { Replica } from './replica/replica.ts';
import { Upkeep } from './replica/upkeep.ts';
import type { SharedServer } from './shared-server.ts';
import { etcdVersion, tenureVersion } from './version.ts';

export interface ServeIo {
  readonly stderr: { write(line: string): unknown };
}

export interface RunningServer {
  /** Where clients reach it, with the ports that were bound. */
  readonly urls: readonly string[];
  /** Ends all streams, answers what was accepted, and closes the log. Resolves within about 5 s. Idempotent. */
  close(): Promise<void>;
  /** Resolves with the reason when the server can't go on; the process should then exit, without calling close. */
  readonly failed: Promise<Error>;
}

/** How long streams may take to end when the server closes. */
const closeGraceMs = 4_000;
/**
 * What the claim names as the length of the leader's right. Not timed on an engine that only one process can write
 * to.
 */
const rightMs = 800;

/**
 * Starts a server and resolves when clients can use it. Rejects with a message for the operator when it can't start.
 */
export async function serve(config: ServerConfig, io: ServeIo): Promise<RunningServer> {
  const log = createLogger(config, io.stderr);
  const server =
    config.engine === 'file' || config.engine === 'memory'
      ? new Server(config, log)
      : await openSharedServer(config, log);
  try {
    await server.start();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

/** The composition root: makes the parts, connects them, and takes them down in the opposite order. */
class Server implements RunningServer {
  readonly failed: Promise<Error>;
  readonly #config: ServerConfig;
  readonly #log: Logger;
  #fail: (error: Error) => void = () => {};
  #engine: LogEngine | undefined;
  #replica: Replica | undefined;
  #leadership: Leadership | undefined;
  #metrics: ServerMetrics | undefined;
  #watch: WatchService | undefined;
  #transport: Transport | undefined;
  #upkeep: Upkeep | undefined;
  #closing: Promise<void> | undefined;
  #urls: readonly string[] = [];

  constructor(config: ServerConfig, log: Logger) {
    this.#config = config;
    this.#log = log;
    this.failed = new Promise((resolve) => (this.#fail = resolve));
  }

  get urls(): readonly string[] {
    return this.#urls;
  }

  async start(): Promise<void> {
    const { replica, leadership } = await this.#recover();
    checkCluster(this.#config.clusterId, replica.state.clusterId);
    if (replica.state.clusterId === 0n) {
      const clusterId = randomBytes(8).readBigUInt64BE() | 1n;
      await replica.propose({ kind: 'createCluster', clusterId, secret: randomBytes(32).toString('base64url') });
    }
    const { built } = await leadership.claim();
    built.catch(this.#fail);
    // No other server reads this log, so none is left behind by a command that it does not know.
    if (!replica.state.hasTxnLimits) await replica.propose({ kind: 'setTxnLimits', limits: defaultTxnLimits });
    const identity = this.#identity(replica);
    const door = this.#openFrontDoor(replica, leadership, identity);
    this.#transport = door.transport;
    this.#urls = await listenAt(this.#transport, this.#config);
    await this.#register(replica, identity.memberId);
    this.#upkeep = this.#keepUp(replica, door, identity.memberId);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#upkeep?.stop();
    this.#watch?.close(statusNamed('Stopped'));
    const shut = this.#transport?.close({ graceMs: closeGraceMs });
    // No renewal is read from here on, however long some calls still take: so no lease may expire either.
    this.#leadership?.stop(new Error('the server is stopping'));
    await shut;
    await this.#replica?.stop();
    this.#metrics?.close();
    await this.#engine?.close();
  }

  async #recover(): Promise<{ replica: Replica; leadership: Leadership }> {
    const config = this.#config;
    this.#engine = await openEngine(config, this.#log, this.#fail);
    const metrics = new ServerMetrics({
      version: tenureVersion,
      quotaBytes: config.quotaBackendBytes,
      source: this.#metricSource(),
    });
    this.#metrics = metrics;
    const replica = await Replica.open({
      engine: this.#engine,
      snapshots: { entries: config.snapshotCount, bytes: config.snapshotLogBytes },
      metrics,
      monotonicMs: () => systemClock.monotonicMs(),
      stampMs: () => this.#leadership?.stampMs() ?? 0,
      onApplied: (entry, applied, beganMs) => this.#onApplied(entry, applied, beganMs),
      onSnapshotPutOff: (reason) =>
        this.#log.warn({ err: reason }, 'no snapshot was written, so the log goes on growing'),
      onFailed: (error) => this.#fail(error),
    });
    this.#replica = replica;
    const leadership = new Leadership({
      clock: systemClock,
      state: () => replica.state,
      port: replica,
      metrics,
      leaderId: randomUUID(),
      heartbeatIntervalMs: config.heartbeatIntervalMs,
      rightMs,
    });
    this.#leadership = leadership;
    return { replica, leadership };
  }

  /** Runs inside apply, before the entry's proposals are answered: leases first, then who watches. */
  #onApplied(entry: Entry, applied: Applied, beganMs: number): void {
    const leadership = this.#leadership;
    if (entry.commands[0]?.kind === 'claim') leadership?.claimed();
    if (applied.leaseChanges.length > 0) {
      leadership?.keeper.applied(applied.leaseChanges);
      this.#metrics?.leasesChanged(applied.leaseChanges);
    }
    if (applied.lastRevision >= applied.firstRevision) this.#watch?.revisionAdvanced(beganMs);
  }

  #identity(replica: Replica): Identity {
    const { clusterId, members } = replica.state;
    const known = members.find(({ name }) => name === this.#config.name);
    const memberId = known?.id ?? randomBytes(8).readBigUInt64BE() | 1n;
    return { clusterId, memberId, headerPrefix: responseHeaderPrefix(clusterId, memberId) };
  }

  #openFrontDoor(replica: Replica, leadership: Leadership, identity: Identity): FrontDoor {
    const { state } = replica;
    const onHttp = createHttpHandler({
      health: {
        alarms: () => state.alarms.map(({ alarm }) => alarm),
        hasLeader: () => true,
        problem: () => undefined,
        // Reads come from memory; what can be wrong is the log, and then an append does not come back.
        read: async ({ serializable }) => (serializable ? undefined : answered(replica.appendReturned())),
      },
      metrics: this.#metrics as ServerMetrics,
      log: this.#log,
      versions: { etcd: etcdVersion, tenure: tenureVersion },
    });
    const desk: LeaseDesk = { renew: (id) => leadership.keeper.renew(id), revision: () => state.currentRevision };
    const keeper = (): LeaseKeeper => leadership.keeper;
    const leaderId = (): bigint => identity.memberId;
    const parts = { config: this.#config, log: this.#log, replica, identity, desk, keeper, leaderId, onHttp };
    const door = openFrontDoor(parts);
    this.#watch = door.watch;
    return door;
  }

  /** Makes this member known, or its new addresses; the log says nothing when nothing changed. */
  async #register(replica: Replica, id: bigint): Promise<void> {
    const { name, advertiseClientUrls } = this.#config;
    const clientUrls = advertiseClientUrls.length > 0 ? advertiseClientUrls : this.#urls;
    const known = replica.state.members.find((member) => member.id === id);
    if (known !== undefined && known.clientUrls.join() === clientUrls.join()) return;
    await replica.propose({ kind: 'registerMember', id, name, clientUrls });
  }

  #keepUp(replica: Replica, door: FrontDoor, memberId: bigint): Upkeep {
    const { autoCompaction: policy, quotaBackendBytes: quotaBytes } = this.#config;
    return new Upkeep({
      policy,
      quotaBytes,
      memberId,
      state: () => replica.state,
      oldestWatched: () => door.watch.oldestWanted,
      isRaisedHere: () => door.quota.hasRaised(),
      // There is nobody else: what stands in the name of another is left from a log that was shared, or raised by hand.
      speaksFor: () => false,
      leads: () => true,
      propose: (command) => replica.propose(command),
      onCompacted: (revision, outcome) => this.#log.info({ revision, outcome }, 'compacted the history by itself'),
    });
  }

  #metricSource(): MetricSource {
    const state = (): StateMachine | undefined => this.#replica?.state;
    return {
      leasesLive: () => this.#leadership?.keeper.tracker.liveCount ?? 0,
      leasesDated: () => {
        const tracker = this.#leadership?.keeper.tracker;
        return tracker === undefined ? 0 : tracker.size - tracker.liveCount;
      },
      watchers: () => this.#watch?.counts.watchers ?? 0,
      watchStreams: () => this.#watch?.counts.streams ?? 0,
      keys: () => state()?.keyCount ?? 0,
      revision: () => state()?.currentRevision ?? 0,
      compactRevision: () => state()?.compactRevision ?? 0,
      stateBytes: () => state()?.sizeBytes ?? 0,
      logBytes: () => this.#engine?.sizeBytes() ?? 0,
      appliedIndex: () => state()?.appliedIndex ?? 0,
      isLeader: () => this.#leadership !== undefined,
    };
  }
}

async function openSharedServer(config: ServerConfig, log: Logger): Promise<SharedServer> {
  const { engine: url, engineSchema: schema, engineDedicated: dedicated } = config;
  const tls = { cacert: config.engineCacert, cert: config.engineCert, key: config.engineKey };
  const onNotice = (notice: string): void => log.warn({ notice }, 'what keeps the log needs a look');
  const { engineUser: user, enginePassword: password, enginePasswordFile: passwordFile } = config;
  const login = { user, password, passwordFile };
  const health = new EngineHealth({
    onChange: (state) => {
      if (state.reachable) log.info({}, 'the database answers again');
      else log.warn({ reason: state.reason }, engineTroubles[state.trouble]);
    },
    onAppendTrouble: (trouble, reason) => log.error({ reason }, `the log takes no entries: ${engineTroubles[trouble]}`),
  });
  const onState = (state: EngineState): void => health.told(state);
  // Loaded here: a server alone needs nothing of what servers say to each other.
  const { SharedServer } = await import('./shared-server.ts');
  const engine = await openSharedEngine({ url, schema, dedicated, tls, login, onNotice, onState });
  return new SharedServer(config, engine, health, log);
}

async function openEngine(config: ServerConfig, log: Logger, onLockLost: (error: Error) => void): Promise<LogEngine> {
  if (config.engine === 'memory') return memoryEngine();
  const onNotice = (notice: string): void => log.warn({ notice }, 'the log was mended');
  return openFileEngine({ folder: config.dataDir, onNotice, onLockLost });
}
