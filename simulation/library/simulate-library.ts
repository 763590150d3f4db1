import { clockErrorMax } from '../leases/expiry-bound.ts';
import type { SimulationOptions, SimulationReport } from '../simulation-report.ts';
import { World } from '../world/world.ts';
import { EtcdStore } from './etcd-store.ts';
import { GuardedResource } from './guarded-resource.ts';
import { HoldChecker } from './hold-checker.ts';
import { LeftoverChecker } from './leftover-checker.ts';
import { LibraryClient } from './library-client.ts';
import { LibraryFaults } from './library-faults.ts';
import { LibraryProcess } from './library-process.ts';
import type { LibraryScenario } from './library-scenario.ts';
import type { LibraryStore } from './library-store.ts';
import { MemoryStore } from './memory-store.ts';
import { ObservedBackend } from './observed-backend.ts';
import { ResendChecker } from './resend-checker.ts';
import { longestDelayMs, StoreNetwork } from './store-network.ts';

/** After healing: every call must return within this time, and then every manager must close within it. */
const recoveryMs = 20_000;
const sweepMs = 250;
/** For messages that are on their way when the managers have closed. */
const graceMs = 2 * longestDelayMs;
/** Messages on their way, and for servers that are killed the changes of leader that follow. */
const leftoverSlackMs = { memory: 4 * longestDelayMs, etcd: 12_000 };

/** Runs processes that use the library: faults are injected, then healed, and every call and manager must end. */
export async function simulateLibrary(
  scenario: LibraryScenario,
  { print }: SimulationOptions = {},
): Promise<SimulationReport> {
  const world = new World({
    seed: scenario.seed,
    servers: scenario.backend === 'etcd' ? scenario.servers : 0,
    olderServers: [],
    isShared: true,
    maxPendingCommands: 65_536,
    lateShare: scenario.lateShare,
    windowBytes: 64 * 1024,
    serverFlags: ['--snapshot-count', `${scenario.snapshotCount}`],
    hidesSuspension: false,
    print,
  });
  await new LibrarySimulation(world, scenario).run();
  return {
    seed: scenario.seed,
    violations: world.allViolations,
    traceHash: world.schedule.traceHash,
    counts: world.coverage.totals,
    wronglyAwakeMs: 0,
  };
}

class LibrarySimulation {
  readonly #world: World;
  readonly #scenario: LibraryScenario;
  /** The way to the memory backend, and to the resource. */
  readonly #network: StoreNetwork;
  readonly #store: LibraryStore;
  readonly #holds: HoldChecker;
  readonly #leftovers: LeftoverChecker;
  readonly #resends: ResendChecker;
  readonly #resource: GuardedResource;
  readonly #clients: LibraryClient[] = [];
  #starts = 0;

  constructor(world: World, scenario: LibraryScenario) {
    const { schedule, coverage, violations } = world;
    this.#world = world;
    this.#scenario = scenario;
    this.#network = new StoreNetwork(world.random('store network'));
    this.#resends = new ResendChecker(violations);
    this.#resource = new GuardedResource(violations);
    const clockRate = this.#rate('store clock');
    this.#store =
      scenario.backend === 'memory'
        ? new MemoryStore({ schedule, clockRate, network: this.#network, coverage })
        : new EtcdStore(world, scenario, this.#resends);
    this.#holds = new HoldChecker({ schedule, truth: this.#store, coverage, violations });
    const slackMs = leftoverSlackMs[scenario.backend];
    this.#leftovers = new LeftoverChecker({ nowMs: () => schedule.nowMs, slackMs, violations });
  }

  async run(): Promise<void> {
    const { schedule, violations, coverage } = this.#world;
    const { processes, faultsMs } = this.#scenario;
    for (let at = 0; at < processes; at += 1) this.#clients.push(this.#start());
    const faults = this.#faults();
    faults.start();
    this.#sweep();
    await schedule.runUntil(faultsMs);
    faults.heal();
    for (const client of this.#clients) client.settle();
    await this.#runWhile(() => this.#clients.some(({ runningCallers }) => runningCallers > 0));
    this.#expectReturned();
    let open = this.#clients.length;
    for (const client of this.#clients) {
      void client
        .close()
        .then(() => this.#store.close(client.process))
        .then(() => (open -= 1));
    }
    await this.#runWhile(() => open > 0);
    await schedule.runUntil(schedule.nowMs + graceMs);
    if (open > 0) violations.report('liveness', `${open} managers did not close`);
    this.#expectNothingOpen();
    coverage.count('library: tokens rejected by the resource', this.#resource.rejections);
  }

  /** Runs on until it is over, or the time for it. */
  async #runWhile(goesOn: () => boolean): Promise<void> {
    const { schedule } = this.#world;
    const endMs = schedule.nowMs + recoveryMs;
    while (goesOn() && schedule.nowMs < endMs) await schedule.runUntil(schedule.nowMs + sweepMs);
  }

  #faults(): LibraryFaults {
    const clients = this.#clients;
    return new LibraryFaults({
      world: this.#world,
      scenario: this.#scenario,
      store: this.#store,
      target: {
        get processes() {
          return clients.map(({ process }) => process);
        },
        restart: (process) => this.#restart(process),
        resumed: (process) => this.#holds.resumed(process),
      },
    });
  }

  #start(): LibraryClient {
    this.#starts += 1;
    const { schedule } = this.#world;
    const name = `process-${this.#starts}`;
    const process = new LibraryProcess(name, {
      schedule,
      monotonicRate: this.#rate(`${name} monotonic clock`),
      wallRate: this.#rate(`${name} wall clock`),
      wallIgnored: false,
    });
    const holds = this.#holds;
    const leftovers = this.#leftovers;
    const backend = new ObservedBackend({
      backend: this.#store.backendOf(process),
      process,
      nowMs: () => schedule.nowMs,
      holds,
      leftovers,
      resends: this.#resends,
    });
    const client = new LibraryClient({
      process,
      backend,
      scenario: this.#scenario,
      holds,
      leftovers,
      resource: this.#resource,
      network: this.#network,
      world: this.#world,
    });
    client.start();
    return client;
  }

  #restart(process: LibraryProcess): void {
    const at = this.#clients.findIndex((client) => client.process === process);
    process.node.dead = true;
    this.#world.trace.note(process.name, () => 'is killed');
    this.#leftovers.killed(process);
    this.#store.killed(process);
    this.#clients[at] = this.#start();
  }

  #rate(name: string): number {
    return 1 + this.#world.random(name).between(-clockErrorMax, clockErrorMax);
  }

  #sweep(): void {
    this.#world.schedule.in(sweepMs, () => {
      void Promise.resolve(this.#store.ids()).then((ids) => this.#leftovers.check(ids));
      this.#sweep();
    });
  }

  #expectReturned(): void {
    for (const { process, runningCallers } of this.#clients) {
      if (runningCallers === 0) continue;
      this.#world.violations.report('liveness', `${runningCallers} callers of ${process.name} still wait`);
    }
  }

  #expectNothingOpen(): void {
    for (const { process } of this.#clients) {
      const { name, timers, openCalls, openWatches } = process;
      if (timers + openCalls + openWatches === 0) continue;
      const words = `${timers} timers, ${openCalls} calls, ${openWatches} watches`;
      this.#world.violations.report('liveness', `${name} was closed and has ${words}`);
    }
  }
}
