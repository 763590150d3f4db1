import type { Clock } from '../time/clock.ts';

export interface ElectionOptions {
  readonly clock: Clock;
  /** Infinity: this server claims only when it is told to. */
  readonly electionTimeoutMs: number;
  /** Of the claim that stands; 0 before the first. */
  readonly rightMs: () => number;
  /** Between 0 and 1. */
  readonly random: () => number;
  /** Whether this server leads, or is claiming. */
  readonly engaged: () => boolean;
  /** Time to claim. The next call comes a whole timeout later unless the claim succeeds. */
  readonly claim: () => void;
}

/** The leader's right is waited out with this much to spare, since clocks do not run equally fast. */
const rightMargin = 1.25;
/** Up to this part of the timeout is added by chance, so that servers do not claim at the same moment. */
const jitterPart = 0.5;

/**
 * Decides when this server claims: when it has applied nothing for max(its election timeout, 1.25 x the right of the
 * epoch) plus jitter. Counting starts with the process.
 */
export class Election {
  readonly #options: ElectionOptions;
  /** When the wait for the next claim began: an entry was applied, or a claim was tried. */
  #waitsFromMs: number;
  #heardMs = -Infinity;
  #jitter: number;
  #cancel: () => void = () => {};
  #stopped = false;

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#waitsFromMs = options.clock.monotonicMs();
    this.#jitter = options.random();
    this.#arm();
  }

  /** An entry was applied. Costs a read of the clock. */
  heard(): void {
    this.#heardMs = this.#options.clock.monotonicMs();
    this.#waitsFromMs = this.#heardMs;
  }

  /** Whether an entry was applied within the election timeout. */
  get hasLeader(): boolean {
    return this.#options.clock.monotonicMs() - this.#heardMs < this.#timeoutMs();
  }

  /** The leader has resigned in favour of this server: nothing has to be waited for. */
  claimNow(): void {
    if (this.#stopped || this.#options.engaged()) return;
    this.#options.claim();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #timeoutMs(): number {
    const { electionTimeoutMs, rightMs } = this.#options;
    return Math.max(electionTimeoutMs, rightMargin * rightMs());
  }

  #arm(): void {
    if (this.#stopped) return;
    const { clock, engaged, claim, random } = this.#options;
    const timeoutMs = this.#timeoutMs() * (1 + jitterPart * this.#jitter);
    if (timeoutMs === Infinity) return;
    const leftMs = this.#waitsFromMs + timeoutMs - clock.monotonicMs();
    if (leftMs <= 0) {
      this.#waitsFromMs = clock.monotonicMs();
      this.#jitter = random();
      if (!engaged()) claim();
      this.#arm();
      return;
    }
    this.#cancel = clock.after(Math.ceil(leftMs), () => this.#arm());
  }
}
