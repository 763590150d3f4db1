import { NodeClock, Schedule, type SeededRandom } from '@tenure/test-support';
import { clockErrorMax } from './expiry-bound.ts';
import { LeaseChecker } from './lease-checker.ts';
import { LeaseHolder } from './lease-holder.ts';
import { SharedLog } from './shared-log.ts';
import { SimulatedServer } from './simulated-server.ts';
import type { Scenario } from './scenario.ts';

/** What a mutation takes away from the cluster itself; the others are made in the code under test. */
export interface Omissions {
  readonly wallClock?: boolean;
  readonly followerIndex?: boolean;
  readonly appendOut?: boolean;
  /** Each client uses one machine only. */
  readonly roaming?: boolean;
}

interface Machine {
  readonly memberId: bigint;
  readonly monotonicRate: number;
  readonly wallRate: number;
  /** The machine is suspended or was, lately: its wall clock must not be stepped so that this cannot be seen. */
  calmFromMs: number;
  server: SimulatedServer;
}

/** Everything of one simulated cluster: machines, log, clients, checker, and the one true time. */
export class Cluster {
  readonly schedule = new Schedule();
  readonly checker: LeaseChecker;
  readonly log: SharedLog;
  readonly holders: readonly LeaseHolder[];
  readonly machines: Machine[] = [];
  readonly #random: SeededRandom;
  readonly #omissions: Omissions;
  #runs = 0;

  constructor(scenario: Scenario, random: SeededRandom, omissions: Omissions) {
    this.#random = random;
    this.#omissions = omissions;
    this.checker = new LeaseChecker(
      () => this.schedule.nowMs,
      (leader) => this.#serverOf(leader)?.clock.stoppedMs ?? 0,
    );
    this.log = new SharedLog(this.schedule, random.split(), (entry, beganMs) => {
      this.checker.committed(entry, beganMs);
      for (const { server } of this.machines) {
        server.clock.deliver(this.#noticeMs(), () => server.replica.noticed());
      }
    });
    for (let index = 0; index < scenario.machines; index += 1) {
      const machine = {
        memberId: BigInt(index + 1),
        monotonicRate: 1 + random.between(-clockErrorMax, clockErrorMax),
        wallRate: 1 + random.between(-clockErrorMax, clockErrorMax),
        calmFromMs: 0,
      };
      this.machines.push({ ...machine, server: this.#newServer(machine) });
    }
    this.holders = Array.from({ length: scenario.holders }, (_, index) => {
      return new LeaseHolder({
        id: BigInt(index + 1),
        ttlMs: Math.round(random.between(scenario.ttlMs[0], scenario.ttlMs[1])),
        schedule: this.schedule,
        random: random.split(),
        checker: this.checker,
        servers: () => this.#serversFor(index),
      });
    });
  }

  start(): void {
    for (const { server } of this.machines) server.start();
    for (const holder of this.holders) holder.start();
  }

  /** The machine whose server leads, or thinks so. */
  leading(): Machine | undefined {
    return this.machines.find(({ server }) => server.replica.leading);
  }

  restart(machine: Machine): void {
    machine.server = this.#newServer(machine);
    machine.server.start();
  }

  #serverOf(leaderId: string): SimulatedServer | undefined {
    return this.machines.map((machine) => machine.server).find((one) => one.leaderId === leaderId);
  }

  /** Those that a client may use. */
  #serversFor(client: number): readonly SimulatedServer[] {
    const { machines } = this;
    const used = this.#omissions.roaming === true ? [machines[client % machines.length] as Machine] : machines;
    return used.map(({ server }) => server);
  }

  #newServer({ memberId, monotonicRate, wallRate }: Omit<Machine, 'server'>): SimulatedServer {
    this.#runs += 1;
    const clock = new NodeClock({
      schedule: this.schedule,
      monotonicRate,
      wallRate,
      wallIgnored: this.#omissions.wallClock ?? false,
    });
    const server: SimulatedServer = new SimulatedServer({
      run: this.#runs,
      memberId,
      clock,
      log: this.log,
      random: this.#random.split(),
      serverOf: (leaderId) => this.#serverOf(leaderId),
      acknowledged: (id, askedMs, epoch) => this.checker.acknowledged(id, askedMs, epoch, clock.awakeMs),
      applied: (state) => this.checker.applied(state),
      trueMs: () => this.schedule.nowMs,
      failed: (error) => this.checker.violated('failed', error.stack ?? error.message),
      appendOutIgnored: this.#omissions.appendOut ?? false,
      followerIndexIgnored: this.#omissions.followerIndex ?? false,
    });
    return server;
  }

  /** A notification is a hint; now and then it is late. */
  #noticeMs(): number {
    return this.log.rough && this.#random.chance(0.02) ? this.#random.between(10, 800) : this.#random.between(0.2, 5);
  }
}
