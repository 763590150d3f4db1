import type { Command, CommandResponse } from '@tenure/core';
import type { Clock } from './clock.ts';
import { ClusterClock } from './cluster-clock.ts';
import { LeaseClock } from './lease-clock.ts';
import { LeaseKeeper, type LeaseKeeperMetrics, type LeaseState } from './lease-keeper.ts';

/** What leadership must know of the replicated state, beside its leases. */
export interface LeadershipState extends LeaseState {
  readonly epoch: number;
  readonly clusterTimeMs: number;
  readonly leaseCount: number;
}

/** What leadership needs of the replica that appends for it. */
export interface LeadershipPort {
  propose(command: Command): Promise<CommandResponse>;
  /** Monotonic time at which the last append began. */
  readonly lastAppendBeganMs: number;
}

export interface LeadershipOptions {
  readonly clock: Clock;
  readonly state: () => LeadershipState;
  readonly port: LeadershipPort;
  readonly metrics: LeaseKeeperMetrics;
  /** The random id of this run of this process. */
  readonly leaderId: string;
  readonly heartbeatIntervalMs: number;
  readonly rightMs: number;
}

/**
 * Leads, on an engine whose log only this process can append to: claims an epoch at start, stamps cluster time, and
 * appends a heartbeat when leases exist and nothing else was appended, so that cluster time goes on. The right of
 * such a leader is not timed: it holds the folder, and the hold ends with the process (design, section 5).
 */
export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #leaseClock: LeaseClock;
  #clusterClock: ClusterClock | undefined;
  #keeper: LeaseKeeper | undefined;
  #cancelHeartbeat: () => void = () => {};
  #stopped = false;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    this.#leaseClock = new LeaseClock(options.clock);
  }

  /** The stamp for an entry whose append begins now. Before the claim is applied, cluster time stands still. */
  stampMs(): number {
    return this.#clusterClock?.nowMs() ?? this.#options.state().clusterTimeMs;
  }

  /** The keeper of the leases; exists from the moment when the claim has been applied. */
  get keeper(): LeaseKeeper {
    if (this.#keeper === undefined) throw new Error('the leases have no keeper before an epoch has been claimed');
    return this.#keeper;
  }

  /**
   * Claims the next epoch, and resolves when this server leads. The leases of earlier epochs are taken over in the
   * background; `built` resolves when that is done and expiry may begin.
   */
  async claim(): Promise<{ built: Promise<void> }> {
    const { state, port, leaderId, rightMs } = this.#options;
    const epoch = state().epoch + 1;
    const response = await port.propose({ kind: 'claim', epoch, leader: leaderId, rightMs });
    if (response.kind === 'error') throw new Error(`the claim of epoch ${epoch} was refused: ${response.code}`);
    // The first entry after a claim follows at once, so that a leader that dies young has moved cluster time.
    await port.propose({ kind: 'heartbeat' });
    this.#beat();
    return { built: this.keeper.build() };
  }

  /**
   * Called directly after the claim was applied, before any later entry is: from here on this server's clock counts.
   */
  claimed(): void {
    const { clock, port, metrics, heartbeatIntervalMs } = this.#options;
    const state = this.#options.state();
    this.#leaseClock.start();
    this.#clusterClock = new ClusterClock(this.#leaseClock, state.clusterTimeMs);
    this.#keeper = new LeaseKeeper({
      clock,
      leaseClock: this.#leaseClock,
      clusterClock: this.#clusterClock,
      state,
      propose: (command) => port.propose(command),
      metrics,
      maxSleepMs: heartbeatIntervalMs,
    });
  }

  /** Ends all timers. Renewals that wait are failed with `reason`. */
  stop(reason: Error): void {
    this.#stopped = true;
    this.#cancelHeartbeat();
    this.#leaseClock.stop();
    this.#keeper?.stop(reason);
  }

  #beat(): void {
    if (this.#stopped) return;
    const { clock, state, port, heartbeatIntervalMs } = this.#options;
    const quietMs = clock.monotonicMs() - port.lastAppendBeganMs;
    let delayMs = heartbeatIntervalMs - quietMs;
    if (delayMs <= 0) {
      delayMs = heartbeatIntervalMs;
      // A refused heartbeat means that the queue is full of other entries, which carry cluster time as well.
      if (state().leaseCount > 0) port.propose({ kind: 'heartbeat' }).catch(() => undefined);
    }
    this.#cancelHeartbeat = clock.after(Math.ceil(delayMs), () => this.#beat());
  }
}
