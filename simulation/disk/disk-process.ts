import type { StateMachine } from '@tenure/core';
import { NodeClock, type Schedule, type SeededRandom } from '@tenure/test-support';
import { FileSystem } from '../../packages/server/src/engines/file/file-system.ts';
import { openFileEngine } from '../../packages/server/src/engines/file/file-engine.ts';
import type { LogEngine } from '../../packages/server/src/engines/log-engine.ts';
import { clockErrorMax } from '../leases/expiry-bound.ts';
import { ServerProcess } from '../world/server-process.ts';
import type { SimulatedNetwork } from '../world/simulated-network.ts';
import type { Trace } from '../world/trace.ts';
import type { DiskScenario } from './disk-scenario.ts';
import { MountedDisk } from './mounted-disk.ts';
import type { SimulatedDisk } from './simulated-disk.ts';

const maxPendingCommands = 65_536;

export interface DiskProcessOptions {
  readonly name: string;
  readonly host: string;
  readonly scenario: DiskScenario;
  readonly schedule: Schedule;
  readonly random: SeededRandom;
  readonly disk: SimulatedDisk;
  readonly network: SimulatedNetwork;
  readonly trace: Trace;
  /** The engine has cut off an append that was never finished. */
  readonly onRepair: (notice: string) => void;
  /** The engine has read the log. Returns the engine that the server uses. */
  readonly onOpened: (process: DiskProcess, engine: LogEngine) => Promise<LogEngine>;
  /** The server has recovered this state, and has appended nothing since. */
  readonly onRecovered: (state: StateMachine) => void;
  /** The server has failed or refuses to start. */
  readonly onExit: (process: DiskProcess, error: Error) => void;
}

/** One run of the production server and its file engine, with its own clock and system calls. */
export class DiskProcess {
  readonly disk: MountedDisk;
  readonly server: ServerProcess;
  readonly #options: DiskProcessOptions;
  readonly #clock: NodeClock;
  #hasRecovered = false;

  constructor(options: DiskProcessOptions) {
    const { name, host, scenario, schedule, random, network, trace, onExit } = options;
    this.#options = options;
    const rate = (): number => random.between(1 - clockErrorMax, 1 + clockErrorMax);
    this.#clock = new NodeClock({ schedule, monotonicRate: rate(), wallRate: rate(), wallIgnored: false });
    this.disk = new MountedDisk(options.disk, this.#clock, random.split());
    this.server = new ServerProcess({
      name,
      host,
      flags: ['--snapshot-count', `${scenario.snapshotCount}`],
      older: undefined,
      maxPendingCommands,
      clock: this.#clock,
      random: random.split(),
      network,
      openEngine: () => this.#openEngine(),
      trace,
      trueMs: () => schedule.nowMs,
      onAcknowledged: () => {},
      onApplied: (state) => this.#applied(state),
      onLoaded: () => {},
      onExit: (_server, error) => onExit(this, error),
    });
  }

  /** Whether it was killed. */
  get hasEnded(): boolean {
    return this.#clock.dead;
  }

  get hasRecovered(): boolean {
    return this.#hasRecovered;
  }

  async #openEngine(): Promise<LogEngine> {
    const { scenario, random, onRepair, onOpened } = this.#options;
    const markers = random.split();
    const { maxSegmentBytes, preallocateBytes, maxFollowBytes } = scenario;
    const engine = await openFileEngine({
      maxSegmentBytes,
      preallocateBytes,
      maxFollowBytes,
      folder: '/data',
      clock: this.#clock,
      random: { bytes: (count) => markers.bytes(count), fraction: () => markers.next() },
      files: new FileSystem(this.disk),
      lock: async () => ({ lostBecause: () => undefined, release: async () => {} }),
      onNotice: onRepair,
    });
    return onOpened(this, engine);
  }

  /** A server is observed from its recovery on. */
  #applied(state: StateMachine): void {
    if (this.#hasRecovered) return;
    this.#hasRecovered = true;
    this.#options.onRecovered(state);
  }
}
