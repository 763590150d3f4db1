import type { OlderServer } from '../servers-scenario.ts';
import type { Machine, World } from '../world/world.ts';

/** How often the operator looks whether the next server can be upgraded. */
const lookMs = 100;

interface Upgrade {
  readonly machine: Machine;
  readonly atMs: number;
  readonly downMs: number;
}

/**
 * The operator of `docs/operations.md`, who upgrades one server at a time: an orderly stop, then the newer version on
 * the same machine. The next one follows when that server serves. Faults go on meanwhile: a server that has died before
 * its stop starts again as the newer version.
 */
export class Rollout {
  readonly #world: World;
  /** Stops a server in order, and starts the machine again after `downMs`. */
  readonly #close: (machine: Machine, downMs: number) => void;
  readonly #waiting: Upgrade[];
  #current: Upgrade | undefined;
  #isHurried = false;

  constructor(world: World, servers: readonly OlderServer[], close: (machine: Machine, downMs: number) => void) {
    this.#world = world;
    this.#close = close;
    this.#waiting = servers.flatMap(({ machine: index, upgradeAtMs: atMs, downMs }) => {
      const machine = world.machines[index];
      return machine === undefined || atMs === undefined ? [] : [{ machine, atMs, downMs }];
    });
    this.#waiting.sort((one, other) => one.atMs - other.atMs);
  }

  get isDone(): boolean {
    return this.#current === undefined && this.#waiting.length === 0;
  }

  start(): void {
    this.#look();
  }

  /** All faults are over: the operator waits no longer than for the last server. */
  hurry(): void {
    this.#isHurried = true;
  }

  #look(): void {
    if (this.#current !== undefined && isUpgraded(this.#current)) this.#upgraded();
    this.#current ??= this.#begin();
    if (this.#current !== undefined) this.#stopOlder(this.#current);
    if (!this.isDone) this.#world.schedule.in(lookMs, () => this.#look());
  }

  /** From here on the machine starts the newer version only. */
  #begin(): Upgrade | undefined {
    const [next] = this.#waiting;
    const { schedule, trace } = this.#world;
    if (next === undefined || (!this.#isHurried && schedule.nowMs < next.atMs)) return undefined;
    this.#waiting.shift();
    trace.note(next.machine.name, () => 'has the newer version');
    next.machine.older = undefined;
    return next;
  }

  /** A process that does not run yet, stands still, or is stopping is left alone until the next look. */
  #stopOlder({ machine, downMs }: Upgrade): void {
    const { process } = machine;
    const isClosing = process.closingFromMs !== Infinity;
    if (!process.isOlder || process.clock.stopped || process.clock.dead || isClosing) return;
    this.#close(machine, this.#isHurried ? 0 : downMs);
  }

  #upgraded(): void {
    const { coverage, machines } = this.#world;
    this.#current = undefined;
    coverage.count('upgrade: a server was restarted as newer');
    if (machines.some(({ process }) => process.isOlder && process.isServing)) {
      coverage.count('upgrade: old and new served side by side');
    }
  }
}

function isUpgraded({ machine: { process } }: Upgrade): boolean {
  return !process.isOlder && process.isServing;
}
