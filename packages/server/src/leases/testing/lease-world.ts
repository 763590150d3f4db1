import { VirtualClock } from '@tenure/test-support';
import { StateMachine, type Command, type CommandResponse, type Entry } from '@tenure/core';
import { noChance } from '../../random/testing/no-chance.ts';
import { Leadership, type LeadershipPort } from '../../election/leadership.ts';
import type { LeaseKeeper } from '../lease-keeper.ts';

/** What the world saw of a lease's end. */
export interface LeaseEnd {
  readonly id: bigint;
  readonly cause: 'revoked' | 'expired';
  readonly atMs: number;
}

/**
 * One leader over the real state machine and the real keeper, on a virtual clock, with a log whose appends take
 * `appendMs`. `restart` is a crash: the leader's memory is gone, the state is what the log says.
 */
export class LeaseWorld {
  readonly clock: VirtualClock = new VirtualClock();
  readonly state: StateMachine = new StateMachine();
  readonly ends: LeaseEnd[] = [];
  readonly commands: Command['kind'][] = [];
  readonly lagsMs: number[] = [];
  leadership: Leadership;
  appendMs = 1;
  /** Appends fail while this is set, without having happened. */
  refusing = false;
  readonly #heartbeatIntervalMs: number;
  #lastAppendBeganMs = 0;
  #generation = 0;
  #leadingGeneration: number | undefined;
  #tail: Promise<void> = Promise.resolve();

  private constructor(heartbeatIntervalMs: number) {
    this.#heartbeatIntervalMs = heartbeatIntervalMs;
    this.leadership = this.#newLeadership();
  }

  static async create(options: { heartbeatIntervalMs?: number } = {}): Promise<LeaseWorld> {
    const world = new LeaseWorld(options.heartbeatIntervalMs ?? 200);
    await world.run(() => world.leadership.claimNow());
    return world;
  }

  get keeper(): LeaseKeeper {
    const { keeper } = this.leadership;
    if (keeper === undefined) throw new Error('there is no leader');
    return keeper;
  }

  get nowMs(): number {
    return this.clock.monotonicMs();
  }

  /** Runs something that waits for the log, letting time pass for it. */
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
    return this.run(async () => this.keeper.renew(id));
  }

  /** A crash and a new start. `downMs` passes while nobody leads. */
  async restart(downMs: number): Promise<void> {
    this.#generation += 1;
    this.leadership.stop(new Error('crashed'));
    this.#tail = Promise.resolve();
    await this.clock.advance(downMs);
    this.leadership = this.#newLeadership();
    await this.run(() => this.leadership.claimNow());
    await this.clock.settle();
  }

  #newLeadership(): Leadership {
    const world = this;
    const generation = this.#generation;
    const port: LeadershipPort = {
      state: this.state,
      isShared: false,
      get leading() {
        return world.#leadingGeneration === generation;
      },
      get lastAppendBeganMs() {
        return world.#lastAppendBeganMs;
      },
      claim: async (claim) => {
        await this.#proposeIn(generation, { kind: 'claim', epoch: this.state.epoch + 1, ...claim });
        return 'leads';
      },
      proposeHere: (command) => this.#proposeIn(generation, command),
      barrier: async () => void (await this.#proposeIn(generation, { kind: 'heartbeat' })),
      leaseSettled: () => undefined,
      revisionSettled: () => undefined,
      stepDown: () => {},
    };
    return new Leadership({
      clock: this.clock,
      port: () => port,
      metrics: {
        leaseRenewed: () => {},
        leaseExpired: (lagMs) => this.lagsMs.push(lagMs),
      },
      memberId: 1n,
      leaderId: `run-${generation}`,
      heartbeatIntervalMs: this.#heartbeatIntervalMs,
      electionTimeoutMs: Infinity,
      rightMs: 800,
      random: noChance,
      onChange: () => {},
      onFailed: (error) => {
        throw error;
      },
    });
  }

  /** Appends one after the other; what a dead process had not appended is lost. */
  #proposeIn(generation: number, command: Command): Promise<CommandResponse> {
    const turn = this.#tail.then(async () => {
      if (generation !== this.#generation) return new Promise<CommandResponse>(() => {});
      if (this.refusing) throw new Error('the log refuses');
      this.#lastAppendBeganMs = this.nowMs;
      const epoch = command.kind === 'claim' ? command.epoch : this.state.epoch;
      const timeMs = this.leadership.stampMs();
      await new Promise<void>((resolve) => this.clock.after(this.appendMs, resolve));
      if (generation !== this.#generation) return new Promise<CommandResponse>(() => {});
      const index = this.state.appliedIndex + 1;
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
    if (command?.kind === 'claim') this.#leadingGeneration = this.#generation;
    this.leadership.applied(entry, applied);
    for (const change of applied.leaseChanges) {
      if (change.kind === 'removed') this.ends.push({ id: change.id, cause: change.cause, atMs: this.nowMs });
    }
    return applied.responses[0] as CommandResponse;
  }
}
