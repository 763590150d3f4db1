import { VirtualClock } from '@tenure/test-support';
import { StateMachine, type Command, type CommandResponse, type Entry } from '@tenure/core';
import { noChance } from '../../random/testing/no-chance.ts';
import { LeadershipDriver } from '../../leadership/leadership-driver.ts';
import { Leadership } from '../../leadership/leadership.ts';
import type { Lessor } from '../lessor.ts';

/** The end of a lease, as the test observed it. */
export interface LeaseEnd {
  readonly id: bigint;
  readonly cause: 'revoked' | 'expired';
  readonly atMs: number;
}

/**
 * One leader with the real state machine and the real lessor, on a virtual clock, with a log whose appends take
 * `appendMs`. `restart` is a crash: the leader's memory is lost, and the state is read from the log.
 */
export class LeaseWorld {
  readonly clock: VirtualClock = new VirtualClock();
  readonly state: StateMachine = new StateMachine();
  readonly ends: LeaseEnd[] = [];
  readonly commands: Command['kind'][] = [];
  readonly lagsMs: number[] = [];
  driver: LeadershipDriver;
  appendMs = 1;
  /** While this is set, appends fail and have no effect. */
  refusing = false;
  readonly #heartbeatIntervalMs: number;
  #generation = 0;
  #leadership!: Leadership;
  #tail: Promise<void> = Promise.resolve();

  private constructor(heartbeatIntervalMs: number) {
    this.#heartbeatIntervalMs = heartbeatIntervalMs;
    this.driver = this.#newDriver();
  }

  static async create(options: { heartbeatIntervalMs?: number } = {}): Promise<LeaseWorld> {
    const world = new LeaseWorld(options.heartbeatIntervalMs ?? 200);
    await world.run(() => world.driver.claimNow());
    return world;
  }

  get lessor(): Lessor {
    const { lessor } = this.#leadership;
    if (lessor === undefined) throw new Error('there is no leader');
    return lessor;
  }

  get nowMs(): number {
    return this.clock.monotonicMs();
  }

  /** Runs an operation that waits for the log, and advances the time for it. */
  run<T>(start: () => Promise<T>): Promise<T> {
    return this.clock.run(start(), 10_000);
  }

  propose(command: Command): Promise<CommandResponse> {
    return this.#proposeIn(this.#generation, command);
  }

  async grant(id: bigint, ttlMs: number): Promise<CommandResponse> {
    return this.run(() => this.propose({ kind: 'leaseGrant', id, ttlMs, label: '' }));
  }

  /** The granted TTL, or 0 when the lease is gone. */
  async renew(id: bigint): Promise<number> {
    return this.run(async () => this.renewNow(id));
  }

  /** The same; a number if the leader's memory decides. */
  renewNow(id: bigint): number | Promise<number> {
    const outcome = this.driver.renew(id, undefined);
    if (outcome === undefined) throw new Error('there is no leader');
    return outcome;
  }

  /** A crash and a restart. There is no leader for `downMs`. */
  async restart(downMs: number): Promise<void> {
    this.#generation += 1;
    this.driver.stop(new Error('crashed'));
    this.#tail = Promise.resolve();
    await this.clock.advance(downMs);
    this.driver = this.#newDriver();
    await this.run(() => this.driver.claimNow());
    await this.clock.settle();
  }

  #newDriver(): LeadershipDriver {
    const generation = this.#generation;
    const leadership = new Leadership({
      clock: this.clock,
      random: noChance,
      state: this.state,
      isShared: false,
      metrics: {
        leaseRenewed: () => {},
        leaseExpired: (lagMs) => this.lagsMs.push(lagMs),
      },
      memberId: 1n,
      leaderId: `run-${generation}`,
      heartbeatIntervalMs: this.#heartbeatIntervalMs,
      electionTimeoutMs: Infinity,
      leaderLeaseMs: 800,
    });
    this.#leadership = leadership;
    return new LeadershipDriver({
      leadership,
      clock: this.clock,
      replica: {
        claim: async (claim) => {
          await this.#proposeIn(generation, { kind: 'claim', epoch: this.state.epoch + 1, ...claim });
          return 'leads';
        },
        proposeHere: (command) => this.#proposeIn(generation, command),
        barrier: async () => void (await this.#proposeIn(generation, { kind: 'heartbeat' })),
        state: this.state,
        leaseSettled: () => undefined,
        revisionSettled: () => undefined,
        authSettled: () => undefined,
        stepDown: () => {},
      },
      onChange: () => {},
      onFailed: (error) => {
        throw error;
      },
    });
  }

  /** Appends one after the other. Entries that a crashed process had not appended are lost. */
  #proposeIn(generation: number, command: Command): Promise<CommandResponse> {
    const turn = this.#tail.then(async () => {
      if (generation !== this.#generation) return new Promise<CommandResponse>(() => {});
      if (this.refusing) throw new Error('the log rejects the append');
      const isClaim = command.kind === 'claim';
      const epoch = isClaim ? command.epoch : this.state.epoch;
      const permit = isClaim ? undefined : this.#leadership.beginAppend();
      const timeMs = permit?.timeMs ?? this.state.clusterTimeMs;
      await new Promise<void>((resolve) => this.clock.after(this.appendMs, resolve));
      if (generation !== this.#generation) return new Promise<CommandResponse>(() => {});
      const index = this.state.appliedIndex + 1;
      if (permit !== undefined) this.driver.tell({ kind: 'appended', permit });
      return this.#apply({ index, epoch, timeMs, commands: [command] });
    });
    this.#tail = turn.then(
      () => {},
      () => {},
    );
    return turn;
  }

  #apply(entry: Entry): CommandResponse {
    const applied = this.state.apply(entry);
    const [command] = entry.commands;
    if (command !== undefined) this.commands.push(command.kind);
    this.driver.tell({ kind: 'applied', entry, applied, beganMs: this.nowMs, leads: true });
    for (const change of applied.leaseChanges) {
      if (change.kind === 'removed') this.ends.push({ id: change.id, cause: change.cause, atMs: this.nowMs });
    }
    return applied.responses[0] as CommandResponse;
  }
}
