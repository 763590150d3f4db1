import { setTimeout as delay } from 'node:timers/promises';
import { RenewalProbe } from './renewal-probe.ts';
import type { TestedServer } from './tested-server.ts';

export interface MeasuredDelay {
  /** The longest wait of a renewal of another lease during the work, in milliseconds; see RenewalProbe. */
  readonly longestMs: number;
  /** The same as measured by the server: how long its event loop was blocked. */
  readonly pauseMs: number;
  readonly tookMs: number;
  readonly renewals: number;
}

/** Time after the work for its consequences: deliveries to watches, garbage collection, the end of a snapshot. */
const settleMs = 400;
const probedLease = 999_999_999n;

/** Measures how long the work of some clients delays the renewals of others. */
export class RenewalDelay {
  readonly #server: TestedServer;
  readonly #probe: RenewalProbe;

  private constructor(server: TestedServer, probe: RenewalProbe) {
    this.#server = server;
    this.#probe = probe;
  }

  static async start(server: TestedServer): Promise<RenewalDelay> {
    await server.lease.leaseGrant({ ID: probedLease, TTL: 600n });
    return new RenewalDelay(server, await RenewalProbe.start(server, probedLease));
  }

  async during(work: () => Promise<unknown>): Promise<MeasuredDelay> {
    await delay(settleMs);
    await this.#server.longestPauseMs();
    await this.#probe.delays();
    const beganMs = performance.now();
    await work();
    const tookMs = performance.now() - beganMs;
    await delay(settleMs);
    const { longestMs, answered } = await this.#probe.delays();
    return { longestMs, tookMs, renewals: answered, pauseMs: await this.#server.longestPauseMs() };
  }

  stop(): Promise<void> {
    return this.#probe.stop();
  }
}

/**
 * By how much the work delays a renewal: the delay that a third of its rounds stay below. Other load on the machine can
 * only increase a round, while the server's own work is in each of them. Prints all rounds.
 */
export function typicalDelayMs(what: string, rounds: readonly MeasuredDelay[]): number {
  const texts = rounds.map(({ longestMs, pauseMs, tookMs }) => {
    return `${longestMs.toFixed(0)} ms (event loop ${pauseMs.toFixed(0)} ms, in ${tookMs.toFixed(0)} ms)`;
  });
  console.log(`${what} delayed a renewal by ${texts.join(', ')}`);
  const sorted = rounds.map(({ longestMs }) => longestMs).toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 3)] as number;
}
