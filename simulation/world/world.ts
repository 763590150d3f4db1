import { NodeClock, Schedule, type SeededRandom } from '@tenure/test-support';
import { decodeLeaseKeepAliveRequest } from '@tenure/codec';
import { clockErrorMax } from '../leases/expiry-bound.ts';
import { KeyChecker } from '../keys/key-checker.ts';
import { WatchChecker } from '../watches/watch-checker.ts';
import { LeaseChecker } from '../leases/lease-checker.ts';
import type { ClientConnection } from './client-connection.ts';
import { Coverage } from './coverage.ts';
import { olderBeginning, OlderLogConnection, type OlderVersion } from '../upgrades/older-version.ts';
import { UpgradeChecker } from '../upgrades/upgrade-checker.ts';
import { FailedAppends } from './failed-appends.ts';
import { LogConnection } from './log-connection.ts';
import { namedRandom } from './named-random.ts';
import { logStart } from '../../packages/server/src/engines/chain-hash.ts';
import { clientPort, ServerProcess } from './server-process.ts';
import { SimulatedLog } from './simulated-log.ts';
import { SimulatedNetwork } from './simulated-network.ts';
import { entryText } from './trace-text.ts';
import { Trace } from './trace.ts';
import { Violations } from './violations.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly servers: number;
  readonly serverFlags: readonly string[];
  /** The machines that have an older version at first: then the log was begun by it, and has all members. */
  readonly olderServers: readonly (OlderVersion & { readonly machine: number })[];
  /** Whether other servers could append to the log. A server on an unshared log is alone. */
  readonly isShared: boolean;
  readonly maxPendingCommands: number;
  readonly lateShare: number;
  readonly windowBytes: number;
  /** No clock counts the time for which a machine is suspended: a paused virtual machine. */
  readonly hidesSuspension: boolean;
  readonly print?: ((line: string) => void) | undefined;
}

/** A computer that runs one server at a time, restarted after each end. */
export interface Machine {
  readonly index: number;
  readonly name: string;
  readonly host: string;
  readonly monotonicRate: number;
  readonly wallRate: number;
  /** The machine is or was recently suspended: its wall clock must not be stepped so that the suspension is hidden. */
  calmFromMs: number;
  /** The version that it starts next; undefined for the present one. */
  older: OlderVersion | undefined;
  process: ServerProcess;
}

/** Reasons for which a server ends by itself and is started again, as a supervisor would. */
const passingEnds = /the log cannot be reached|the connection to the log broke|was removed|no outcome in time/;
/** How long a supervisor waits. */
const restartMs = 400;

/** Servers on machines with clocks of their own, the log and the network between them, and true time. */
export class World {
  readonly schedule = new Schedule();
  readonly coverage = new Coverage();
  readonly trace: Trace;
  readonly violations: Violations;
  readonly leases: LeaseChecker;
  readonly keys: KeyChecker;
  readonly watches: WatchChecker;
  /** Undefined when no server was ever older. */
  readonly upgrades: UpgradeChecker | undefined;
  readonly log: SimulatedLog;
  readonly network: SimulatedNetwork;
  readonly machines: readonly Machine[];
  readonly #options: WorldOptions;
  readonly #processes = new Map<NodeClock, ServerProcess>();
  #runs = 0;

  constructor(options: WorldOptions) {
    const { schedule, coverage } = this;
    this.#options = options;
    this.trace = new Trace(schedule, options.print);
    this.violations = new Violations(schedule, this.trace);
    const trueMs = (): number => schedule.nowMs;
    this.leases = new LeaseChecker({
      trueMs,
      violations: this.violations,
      coverage,
      closingMs: (process) => this.#processes.get(process)?.closingMs ?? 0,
      closingFromMs: (process) => this.#processes.get(process)?.closingFromMs ?? Infinity,
    });
    this.keys = new KeyChecker(trueMs);
    this.watches = new WatchChecker(trueMs, this.keys.oracle);
    this.upgrades = options.olderServers.length === 0 ? undefined : this.#newUpgradeChecker();
    const failedAppends = new FailedAppends(coverage);
    this.log = new SimulatedLog({
      schedule,
      random: this.random('log'),
      onDurable: (entry) => {
        const { position, bytes, writer } = entry;
        this.trace.note(this.#processes.get(writer)?.name ?? '', () => `appends ${entryText(position.index, bytes)}`);
        this.leases.committed(entry);
        this.keys.committed(entry);
        failedAppends.durable(entry);
        this.upgrades?.committed(entry, this.#processes.get(writer)?.isOlder ?? true);
      },
      onFailed: (bytes, writer, isUnknown) => failedAppends.told(bytes, writer, isUnknown),
    });
    this.network = new SimulatedNetwork({
      schedule,
      random: this.random('network'),
      trace: this.trace,
      lateShare: options.lateShare,
      windowBytes: options.windowBytes,
      onFailure: (address, path, error) => {
        this.violations.report('failed', `${path} at ${address}: ${error instanceof Error ? error.stack : error}`);
      },
      onSocket: (serverName, path, message, isLost) => this.#onSocket(serverName, path, message, isLost),
    });
    this.machines = Array.from({ length: options.servers }, (_, index) => this.#newMachine(index));
  }

  random(name: string): SeededRandom {
    return namedRandom(this.#options.seed, name);
  }

  start(): void {
    if (this.upgrades !== undefined) this.#beginOlderLog();
    for (const { process } of this.machines) process.start();
  }

  /** The machine whose server leads or believes that it does. */
  leading(): Machine | undefined {
    return this.machines.find(({ process }) => process.leads);
  }

  /**
   * Whether every server serves and has applied the log up to that index, one of them leads, and no connection is
   * broken without both ends knowing it.
   */
  isWholeAt(index: number): boolean {
    const isServing = ({ process }: Machine): boolean =>
      process.isServing && (process.server?.state.appliedIndex ?? 0) >= index;
    const isNoticed = this.schedule.nowMs >= this.network.breaksNoticedMs;
    return isNoticed && this.machines.every(isServing) && this.leading() !== undefined;
  }

  get isShared(): boolean {
    return this.#options.isShared;
  }

  kill(machine: Machine): void {
    this.trace.note(machine.name, () => 'is killed');
    machine.process.kill();
  }

  restart(machine: Machine): void {
    this.trace.note(machine.name, () => 'is started');
    machine.process = this.#newProcess(machine);
    machine.process.start();
  }

  /** The violations of all checkers. */
  get allViolations(): readonly string[] {
    return [...this.violations.all, ...this.keys.violations, ...this.watches.violations];
  }

  /** The clocks of a client: true time, unless it drifts. */
  clientClock(drifts = false): NodeClock {
    const random = this.random(`clock ${this.#runs++}`);
    const rate = (): number => (drifts ? 1 + random.between(-clockErrorMax, clockErrorMax) : 1);
    return new NodeClock({
      schedule: this.schedule,
      monotonicRate: rate(),
      wallRate: rate(),
      wallIgnored: false,
    });
  }

  connect(name: string, clock: NodeClock, random: SeededRandom): ClientConnection {
    const { host } = random.pick(this.machines);
    return this.network.connect({ name, clock }, `${host}:${clientPort}`);
  }

  #newUpgradeChecker(): UpgradeChecker {
    const { violations, coverage } = this;
    const isOlder = ({ older, process }: Machine): boolean =>
      older !== undefined || (process.isOlder && !process.clock.dead);
    return new UpgradeChecker({
      violations,
      coverage,
      olderServers: () => this.machines.filter(isOlder).map(({ name }) => name),
    });
  }

  /** The older version has begun the log, and its servers have registered. */
  #beginOlderLog(): void {
    const members = this.machines.map(({ name, host }, index) => {
      return { id: BigInt(index + 1), name, clientUrls: [`http://${host}:${clientPort}`] };
    });
    const request = { bytes: olderBeginning(members), after: logStart, beganMs: 0, writer: this.clientClock() };
    this.log.commit(request, () => {});
  }

  #newMachine(index: number): Machine {
    const random = this.random(`machine ${index}`);
    const machine = {
      index,
      name: `server-${index + 1}`,
      host: `10.0.0.${index + 1}`,
      monotonicRate: 1 + random.between(-clockErrorMax, clockErrorMax),
      wallRate: 1 + random.between(-clockErrorMax, clockErrorMax),
      calmFromMs: 0,
      older: this.#options.olderServers.find((older) => older.machine === index),
    };
    return { ...machine, process: this.#newProcess(machine) };
  }

  #newProcess(machine: Omit<Machine, 'process'>): ServerProcess {
    const { serverFlags, maxPendingCommands, isShared, hidesSuspension } = this.#options;
    const { monotonicRate, wallRate, name, host, older } = machine;
    const { coverage } = this;
    this.#runs += 1;
    const random = this.random(`${name} run ${this.#runs}`);
    const clock = new NodeClock({
      schedule: this.schedule,
      monotonicRate,
      wallRate,
      wallIgnored: hidesSuspension,
      turnMs: () => random.between(0, 1),
    });
    const Connection = older === undefined ? LogConnection : OlderLogConnection;
    const process = new ServerProcess({
      name,
      host,
      flags: serverFlags,
      older,
      maxPendingCommands,
      clock,
      random,
      network: this.network,
      openEngine: async () => new Connection(this.log, clock, isShared),
      trace: this.trace,
      trueMs: () => this.schedule.nowMs,
      onAcknowledged: (id, askedMs, epoch) => {
        this.trace.note(name, () => `acknowledges a renewal of lease ${id} in epoch ${epoch}`);
        this.leases.acknowledged(id, askedMs, epoch, clock.awakeMs);
      },
      onApplied: (state) => this.leases.applied(state),
      onLoaded: () => {
        coverage.count('a running server loaded a snapshot');
        if (this.network.hasRequests(name)) coverage.count('a running server loaded a snapshot while requests waited');
      },
      onExit: (ended, error) => this.#onExit(machine.index, ended, error),
    });
    this.#processes.set(clock, process);
    return process;
  }

  #onExit(index: number, process: ServerProcess, error: Error): void {
    this.trace.note(process.name, () => `ends: ${error.message}`);
    // A server that serves must wait until such a trouble has passed.
    const isExcused = !process.isServing && passingEnds.test(error.message);
    process.kill();
    if (!isExcused) this.violations.report('failed', `${process.name}: ${error.stack}`);
    this.schedule.in(restartMs, () => {
      const machine = this.machines[index];
      if (machine?.process === process) this.restart(machine);
    });
  }

  #onSocket(serverName: string, path: string, message: Buffer, isLost: () => boolean): void {
    if (path !== '/etcdserverpb.Lease/LeaseKeepAlive') return;
    const machine = this.machines.find(({ name }) => name === serverName);
    if (machine === undefined) return;
    this.leases.arrived(decodeLeaseKeepAliveRequest(message), machine.process.clock, isLost);
  }
}
