import type { SeededRandom } from '@tenure/test-support';
import type { Coverage } from '../world/coverage.ts';
import type { Trace } from '../world/trace.ts';
import type { DiskScenario, Lie } from './disk-scenario.ts';

export type DiskFault = 'failed read' | 'failed write' | 'failed sync' | 'short write';

/** The most that one seed needs: more damage than this is found no better. A bit that is flipped on read harms less. */
const maxLies = 2;
const maxReadLies = 12;

export interface DiskFaultOptions {
  readonly scenario: DiskScenario;
  readonly random: SeededRandom;
  readonly coverage: Coverage;
  readonly trace: Trace;
}

/** The faults of the disk, as often as the scenario says. */
export class DiskFaults {
  readonly lie: Lie | 'none';
  /** The number of lies so far. */
  liesTold = 0;
  readonly #options: DiskFaultOptions;
  readonly #perThousand: Readonly<Record<DiskFault, number>>;
  #isHealed = false;

  constructor(options: DiskFaultOptions) {
    const { lie, failedReads, failedWrites, failedSyncs, shortWrites } = options.scenario;
    this.#options = options;
    this.lie = lie;
    this.#perThousand = {
      'failed read': failedReads,
      'failed write': failedWrites,
      'failed sync': failedSyncs,
      'short write': shortWrites,
    };
  }

  heal(): void {
    this.#isHealed = true;
  }

  happens(fault: DiskFault): boolean {
    return this.#draws(this.#perThousand[fault]) && this.#noted(fault);
  }

  lies(kind: Lie): boolean {
    const most = kind === 'bit flipped on read' ? maxReadLies : maxLies;
    if (this.lie !== kind || this.liesTold >= most) return false;
    if (!this.#draws(this.#options.scenario.liesPerThousand)) return false;
    this.liesTold += 1;
    return this.#noted(kind);
  }

  latencyMs(): number {
    const { random, scenario } = this.#options;
    return this.#draws(scenario.slowOperations) ? random.between(20, 400) : random.between(0.05, 1.5);
  }

  #draws(perThousand: number): boolean {
    return !this.#isHealed && this.#options.random.chance(perThousand / 1_000);
  }

  #noted(what: DiskFault | Lie): true {
    const { coverage, trace } = this.#options;
    coverage.count(`disk: ${what}`);
    trace.note('disk', () => what);
    return true;
  }
}
