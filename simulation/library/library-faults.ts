import type { World } from '../world/world.ts';
import type { LibraryProcess } from './library-process.ts';
import type { LibraryFault, LibraryScenario } from './library-scenario.ts';
import type { LibraryStore } from './library-store.ts';

/** The processes of the moment, and how one is replaced. */
export interface FaultTarget {
  readonly processes: readonly LibraryProcess[];
  restart(process: LibraryProcess): void;
  resumed(process: LibraryProcess): void;
}

interface LibraryFaultsOptions {
  readonly world: World;
  readonly scenario: LibraryScenario;
  readonly store: LibraryStore;
  readonly target: FaultTarget;
}

/** Injects the faults of processes that use the library, until they are healed. */
export class LibraryFaults {
  readonly #options: LibraryFaultsOptions;
  readonly #hasSuspensions: boolean;
  #isHealed = false;

  constructor(options: LibraryFaultsOptions) {
    this.#options = options;
    this.#hasSuspensions = options.scenario.faults.some(({ kind }) => kind === 'suspend');
  }

  start(): void {
    const { world, scenario } = this.#options;
    for (const fault of scenario.faults) {
      world.schedule.at(fault.atMs, () => {
        if (!this.#isHealed) this.#strike(fault);
      });
    }
  }

  heal(): void {
    const { store, target } = this.#options;
    this.#isHealed = true;
    store.heal();
    for (const process of target.processes) this.#resume(process);
  }

  #strike(fault: LibraryFault): void {
    const { target, store, world } = this.#options;
    const process = target.processes[fault.process];
    if (process === undefined) return;
    world.trace.note(process.name, () => `fault: ${fault.kind} for ${Math.round(fault.lastsMs)} ms`);
    world.coverage.count(`library: fault ${fault.kind}`);
    switch (fault.kind) {
      case 'outage':
      case 'loss':
      case 'slow':
        world.schedule.in(fault.lastsMs, store.disturb(fault, process));
        break;
      case 'kill':
        target.restart(process);
        break;
      case 'step':
        this.#stepWall(process, fault.amount);
        break;
      case 'pause':
      case 'suspend':
        if (fault.isAfterRenewal) process.afterRenewalSent = () => this.#stop(process, fault);
        else this.#stop(process, fault);
        break;
    }
  }

  #stop(process: LibraryProcess, { kind, lastsMs }: LibraryFault): void {
    if (this.#isHealed || process.node.stopped) return;
    if (kind === 'suspend') process.suspend();
    else process.node.pause();
    this.#options.world.schedule.in(lastsMs, () => {
      if (!this.#isHealed) this.#resume(process);
    });
  }

  /** A clock that is set back hides a suspension, so where machines are suspended it is only set forward. */
  #stepWall(process: LibraryProcess, amount: number): void {
    const mostMs = this.#options.scenario.ttlMs[1];
    process.node.stepWall(this.#hasSuspensions ? amount * mostMs : (2 * amount - 1) * mostMs);
  }

  #resume(process: LibraryProcess): void {
    if (process.node.dead || !process.node.stopped) return;
    this.#options.world.trace.note(process.name, () => 'continues');
    process.resume();
    this.#options.target.resumed(process);
  }
}
