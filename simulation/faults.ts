import type { Cluster } from './cluster.ts';
import type { Scenario } from './scenario.ts';
import type { SeededRandom } from '@tenure/test-support';

/** A wall clock is not stepped so near to a suspension: backwards by as much, it would hide it from anybody. */
const calmMs = 6_000;

type Machine = Cluster['machines'][number];

/** What goes wrong, until it is healed. */
export class Faults {
  readonly #cluster: Cluster;
  readonly #random: SeededRandom;
  readonly #scenario: Scenario;
  #healed = false;

  constructor(cluster: Cluster, scenario: Scenario, random: SeededRandom) {
    this.#cluster = cluster;
    this.#scenario = scenario;
    this.#random = random;
  }

  start(): void {
    this.#cluster.log.trouble = this.#scenario.engineTrouble;
    this.#next();
  }

  /** No further fault begins, and those that last end by themselves within some seconds. */
  heal(): void {
    this.#healed = true;
    this.#cluster.log.rough = false;
    this.#cluster.log.trouble = 0;
    this.#cluster.log.away = false;
    this.#cluster.log.cutOff.clear();
  }

  #next(): void {
    const { gapMs } = this.#scenario;
    this.#cluster.schedule.in(this.#random.between(gapMs[0], gapMs[1]), () => {
      if (this.#healed) return;
      this.#strike();
      this.#next();
    });
  }

  #strike(): void {
    const random = this.#random;
    const { machines } = this.#cluster;
    const leading = random.chance(this.#scenario.atLeader) ? this.#cluster.leading() : undefined;
    const machine = leading ?? random.pick(machines);
    if (machine.server.clock.stopped) return;
    const lastsMs = random.chance(0.6) ? random.between(900, 4_000) : random.between(20, 900);
    const kind = random.next();
    if (kind < 0.28) this.#stall(machine, lastsMs, false);
    else if (kind < 0.5) this.#stall(machine, lastsMs, true);
    else if (kind < 0.72) this.#crash(machine, lastsMs);
    else if (kind < 0.78) this.#stepWall(machine);
    else if (kind < 0.84) machine.server.cutLink();
    else if (kind < 0.9) this.#engineAway(lastsMs);
    else if (kind < 0.95) this.#cutOff(machine, lastsMs);
    else machine.server.moveLeader(random.pick(machines).memberId);
  }

  #stall(machine: Machine, lastsMs: number, suspended: boolean): void {
    const { clock } = machine.server;
    const { schedule } = this.#cluster;
    if (suspended && schedule.nowMs < machine.calmFromMs) return;
    if (suspended) {
      clock.suspend();
      machine.calmFromMs = schedule.nowMs + lastsMs + calmMs;
    } else clock.pause();
    schedule.in(lastsMs, () => clock.resume());
  }

  #crash(machine: Machine, downMs: number): void {
    machine.server.crash();
    this.#cluster.schedule.in(downMs, () => this.#cluster.restart(machine));
  }

  #stepWall(machine: Machine): void {
    const { nowMs } = this.#cluster.schedule;
    if (nowMs < machine.calmFromMs) return;
    machine.calmFromMs = nowMs + calmMs;
    machine.server.clock.stepWall(this.#random.between(-5_000, 5_000));
  }

  /** This one does not reach the engine, but the other servers and its clients. */
  #cutOff({ server: { clock } }: Machine, lastsMs: number): void {
    const { log, schedule } = this.#cluster;
    log.cutOff.add(clock);
    schedule.in(lastsMs, () => log.cutOff.delete(clock));
  }

  #engineAway(lastsMs: number): void {
    const { log, schedule } = this.#cluster;
    log.away = true;
    schedule.in(lastsMs, () => {
      log.away = false;
    });
  }
}
