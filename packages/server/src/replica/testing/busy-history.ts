import { type Command, StateMachine } from '@tenure/core';
import { VirtualClock } from '@tenure/test-support';
import { AutoCompactor } from '../auto-compactor.ts';

export interface BusyHistoryOptions {
  readonly quotaBytes: number;
  readonly cyclesPerSecond: number;
  readonly oldestWatched?: () => number | undefined;
}

/** Cycles in one entry of the log. */
const cyclesPerEntry = 100;
const fillBytes = 16 * 1024;

/**
 * The real state under locks that are acquired and released, each with its own lease, and the real compactor in its
 * default mode, on a virtual clock.
 */
export class BusyHistory {
  readonly state = new StateMachine();
  readonly clock = new VirtualClock();
  readonly #options: BusyHistoryOptions;
  readonly #compactor: AutoCompactor;
  #cycles = 0;
  #compactions = 0;

  constructor(options: BusyHistoryOptions) {
    this.#options = options;
    const { quotaBytes, oldestWatched = () => undefined } = options;
    this.#append({ kind: 'claim', epoch: 1, leader: '', leaderLeaseMs: 0 });
    this.#compactor = new AutoCompactor({
      clock: this.clock,
      policy: { mode: 'bounded', retentionMs: 3_600_000 },
      state: () => this.state,
      quotaBytes,
      oldestWatched,
      compact: async (revision) => {
        this.#compactions += 1;
        this.#append({ kind: 'compact', revision });
      },
    });
  }

  get compactions(): number {
    return this.#compactions;
  }

  cycle(count: number): void {
    for (let left = count; left > 0; left -= cyclesPerEntry) {
      this.#append(...Array.from({ length: Math.min(left, cyclesPerEntry) }, () => this.#nextCycle()).flat());
    }
  }

  async nextSecond(): Promise<void> {
    this.cycle(this.#options.cyclesPerSecond);
    await this.clock.advance(1_000);
    while (this.state.collectGarbage(10_000));
  }

  /** Puts keys until they take that share of the quota. */
  fill(share: number): void {
    for (let key = 0; this.state.sizeInUseBytes < share * this.#options.quotaBytes; key += 1) {
      this.#append(put(`fill/${key}`, 'x'.repeat(fillBytes), 0n));
    }
  }

  stop(): void {
    this.#compactor.stop();
  }

  #nextCycle(): Command[] {
    this.#cycles += 1;
    const id = BigInt(this.#cycles);
    const grant: Command = { kind: 'leaseGrant', id, ttlMs: 30_000, label: '' };
    return [grant, put(`locks/job-${this.#cycles % 10}/${id}`, 'holder', id), { kind: 'leaseRevoke', id }];
  }

  #append(...commands: Command[]): void {
    const [first] = commands;
    const epoch = first?.kind === 'claim' ? first.epoch : this.state.epoch;
    this.state.apply({ index: this.state.appliedIndex + 1, epoch, timeMs: 0, commands });
  }
}

function put(key: string, value: string, lease: bigint): Command {
  return { kind: 'put', put: { key, value, lease, prevKv: false, ignoreValue: false, ignoreLease: false } };
}
