import { NodeClock, Schedule } from '@tenure/test-support';
import type { StateMachine } from '@tenure/core';
import { EngineError } from '../../packages/server/src/engines/engine-error.ts';
import type { LogEngine, LoggedEntry, Position } from '../../packages/server/src/engines/log-engine.ts';
import type { ClientConnection } from '../world/client-connection.ts';
import { Coverage } from '../world/coverage.ts';
import { namedRandom } from '../world/named-random.ts';
import { clientPort } from '../world/server-process.ts';
import { SimulatedNetwork } from '../world/simulated-network.ts';
import { Trace } from '../world/trace.ts';
import { Violations } from '../world/violations.ts';
import { DiskChecker, type DiskTrust } from './disk-checker.ts';
import { DiskFaults } from './disk-faults.ts';
import { DiskProcess } from './disk-process.ts';
import type { Crash, DiskScenario, FullDisk, PlannedRun } from './disk-scenario.ts';
import { recordAppends } from './record-appends.ts';
import { SimulatedDisk } from './simulated-disk.ts';

const name = 'server';
const host = '10.0.0.1';
/** When no planned run is left. */
const restartMs = 50;

/** One machine with a disk, on which the server starts again after each end. */
export class DiskWorld {
  readonly schedule = new Schedule();
  readonly coverage = new Coverage();
  readonly trace: Trace;
  readonly violations: Violations;
  readonly checker: DiskChecker;
  readonly #scenario: DiskScenario;
  readonly #network: SimulatedNetwork;
  readonly #faults: DiskFaults;
  readonly #disk: SimulatedDisk;
  #process: DiskProcess | undefined;
  #run: PlannedRun | undefined;
  #runs = 0;
  #recoveredMs = 0;
  #isHealed = false;
  /** The disk has lost what the server needs: it reports damage at each start. */
  #isDamaged = false;

  constructor(scenario: DiskScenario, print?: (line: string) => void) {
    const { schedule, coverage } = this;
    const { seed } = scenario;
    this.#scenario = scenario;
    this.trace = new Trace(schedule, print);
    this.violations = new Violations(schedule, this.trace);
    this.checker = new DiskChecker(this.violations, () => schedule.nowMs);
    this.#network = new SimulatedNetwork({
      schedule,
      random: namedRandom(seed, 'network'),
      trace: this.trace,
      lateShare: 0,
      windowBytes: 64 * 1024,
      onFailure: (_address, path, error) => {
        this.violations.report('failed', `${path}: ${error instanceof Error ? error.stack : error}`);
      },
    });
    this.#faults = new DiskFaults({ scenario, random: namedRandom(seed, 'faults'), coverage, trace: this.trace });
    this.#disk = new SimulatedDisk(this.#faults, namedRandom(seed, 'disk'), coverage);
  }

  start(): void {
    for (const full of this.#scenario.fullDisks) this.#fill(full);
    this.#startProcess();
  }

  connect(client: string): { readonly connection: ClientConnection; readonly clock: NodeClock } {
    const clock = new NodeClock({ schedule: this.schedule, monotonicRate: 1, wallRate: 1, wallIgnored: false });
    return { connection: this.#network.connect({ name: client, clock }, `${host}:${clientPort}`), clock };
  }

  /** The last crash, and from then on a healthy disk. */
  heal(): void {
    this.#isHealed = true;
    this.#faults.heal();
    this.#disk.roomBytes = Infinity;
    this.trace.note('disk', () => 'is healthy from now on');
    if (this.#process !== undefined) this.#crash(this.#process, this.#scenario.lastCrash);
  }

  judgeEnd(): void {
    if (this.#isDamaged) return;
    const { server } = this.#process ?? {};
    if (server?.isServing !== true) this.violations.report('D1', 'the server does not run on a healthy disk');
    else this.checker.quiet(server.server!.state, this.#recoveredMs);
  }

  #fill({ atMs, lastsMs, roomBytes }: FullDisk): void {
    this.schedule.in(atMs, () => {
      if (this.#isHealed) return;
      this.#disk.roomBytes = this.#disk.usedBytes + roomBytes;
      this.coverage.count('disk: full');
      this.trace.note('disk', () => `has room for ${roomBytes} more bytes`);
    });
    this.schedule.in(atMs + lastsMs, () => (this.#disk.roomBytes = Infinity));
  }

  #startProcess(): void {
    this.#run = this.#isHealed ? undefined : this.#scenario.runs[this.#runs];
    this.#runs += 1;
    const process = new DiskProcess({
      name,
      host,
      scenario: this.#scenario,
      schedule: this.schedule,
      random: namedRandom(this.#scenario.seed, `run ${this.#runs}`),
      disk: this.#disk,
      network: this.#network,
      trace: this.trace,
      onRepair: (notice) => {
        this.coverage.count('disk: torn tail cut off');
        this.trace.note(name, () => notice);
      },
      onOpened: (opened, engine) => this.#opened(opened, engine),
      onRecovered: (state) => this.#recovered(state),
      onExit: (ended, error) => this.#exited(ended, error),
    });
    this.#process = process;
    this.trace.note(name, () => 'is started');
    if (this.#run !== undefined) this.#planEnd(process, this.#run);
    process.server.start();
  }

  #planEnd(process: DiskProcess, { ending, afterOperations, afterMs }: PlannedRun): void {
    const operations = ending === 'power lost' ? afterOperations : Infinity;
    this.#disk.losePowerAfter(operations, () => this.#crash(process, 'power lost'));
    if (ending === 'power lost') return;
    this.schedule.in(afterMs, () => {
      if (this.#process !== process) return;
      if (ending === 'closed' && process.server.isServing) void this.#close(process);
      else this.#crash(process, 'killed');
    });
  }

  #crash(process: DiskProcess, how: Crash): void {
    if (this.#process !== process) return;
    this.coverage.count(`disk: ${how}`);
    if (!process.server.isServing) this.coverage.count(`disk: ${how} during a start`);
    this.trace.note(name, () => (how === 'killed' ? 'is killed' : 'loses its power'));
    process.server.kill();
    if (how === 'power lost') this.#disk.losePower();
    this.#ended();
  }

  async #close(process: DiskProcess): Promise<void> {
    this.coverage.count('disk: closed');
    this.trace.note(name, () => 'is closed');
    // With any outcome the process ends: a failed disk may fail this as well.
    await process.server.close().catch(() => undefined);
    if (this.#process !== process) return;
    process.server.kill();
    this.#ended();
  }

  /** The server has failed or was refused, and its process ends. */
  #exited(process: DiskProcess, error: Error): void {
    if (this.#process !== process) return;
    const code = error instanceof EngineError ? error.code : 'error';
    this.coverage.count(`disk: refused, ${code}`);
    this.trace.note(name, () => `ends: ${code}: ${error.message}`);
    this.checker.refused(code, error.message, this.#trust(process));
    if (code === 'damaged' && this.#faults.lie !== 'bit flipped on read') this.#isDamaged = true;
    process.server.kill();
    this.#ended();
  }

  #ended(): void {
    this.#process = undefined;
    this.#disk.losePowerAfter(Infinity, () => {});
    if (this.#run?.evictsFiles === true) this.#disk.evict();
    if (!this.#isDamaged) this.schedule.in(this.#run?.restartMs ?? restartMs, () => this.#startProcess());
  }

  async #opened(process: DiskProcess, engine: LogEngine): Promise<LogEngine> {
    const tail = await engine.tail();
    if ((await engine.loadSnapshot()) !== undefined) this.coverage.count('disk: snapshot found');
    const { end } = this.checker;
    const found = tail.index > end.index ? await readFrom(engine, end, tail) : [];
    if (found.length > 0) this.coverage.count('disk: unacknowledged append found');
    if (tail.index < end.index) this.coverage.count('disk: acknowledged append lost');
    this.trace.note(name, () => `finds entry ${tail.index} at the end of its log, acknowledged were ${end.index}`);
    this.checker.opened(tail, found, this.#trust(process));
    if (this.#run?.crashesWhenOpen !== true) return recordAppends(engine, this.checker, process.disk, this.trace);
    this.coverage.count('disk: opened twice');
    this.#crash(process, this.#run.ending === 'power lost' ? 'power lost' : 'killed');
    return new Promise(() => {});
  }

  #recovered(state: StateMachine): void {
    this.#recoveredMs = this.schedule.nowMs;
    this.coverage.count('disk: recovered');
    this.checker.recovered(state);
  }

  #trust(process: DiskProcess): DiskTrust {
    const { lie, liesTold } = this.#faults;
    return {
      hasLostWrites: liesTold > 0 && (lie === 'lost write' || lie === 'misdirected write'),
      hasLied: liesTold > 0,
      hasFailed: process.disk.hasFailed,
    };
  }
}

/** The entries after `from` up to the end of the log. */
async function readFrom(engine: LogEngine, from: Position, tail: Position): Promise<LoggedEntry[]> {
  const found: LoggedEntry[] = [];
  const stop = new AbortController();
  for await (const entries of engine.follow(from, stop.signal)) {
    found.push(...entries);
    if ((found.at(-1)?.position.index ?? 0) >= tail.index) break;
  }
  return found;
}
