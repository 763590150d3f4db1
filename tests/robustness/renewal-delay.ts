import { setTimeout as delay } from 'node:timers/promises';
import { RenewalProbe } from './renewal-probe.ts';
import type { TestedServer } from './tested-server.ts';

export interface MeasuredDelay {
  /** What a renewal of another lease waited at most while the work was done, in milliseconds; see RenewalDelays. */
  readonly longestMs: number;
  /** The same as the server saw it: how long its event loop was held up. */
  readonly pauseMs: number;
  readonly tookMs: number;
  readonly renewals: number;
}

/** After the work, until what it sets off is over as well: deliveries to watches, scrubbing, a snapshot's end. */
const aftermathMs = 400;
const probedLease = 999_999_999n;

/** Measures how long work that the server does for some holds up the renewals of others. */
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
    await delay(aftermathMs);
    await this.#server.longestPauseMs();
    await this.#probe.delays();
    const beganMs = performance.now();
    await work();
    const tookMs = performance.now() - beganMs;
    await delay(aftermathMs);
    const { longestMs, answered } = await this.#probe.delays();
    return { longestMs, tookMs, renewals: answered, pauseMs: await this.#server.longestPauseMs() };
  }

  stop(): Promise<void> {
    return this.#probe.stop();
  }
}

/**
 * How long the work holds up a renewal: in a third of its rounds for less than this. What else runs on the machine
 * can only add to a round, while what the server itself does is in each. Prints all of them.
 */
export function typicalDelayMs(what: string, rounds: readonly MeasuredDelay[]): number {
  const texts = rounds.map(({ longestMs, pauseMs, tookMs }) => {
    return `${longestMs.toFixed(0)} ms (event loop ${pauseMs.toFixed(0)} ms, in ${tookMs.toFixed(0)} ms)`;
  });
  console.log(`${what} held up a renewal for ${texts.join(', ')}`);
  const sorted = rounds.map(({ longestMs }) => longestMs).toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 3)] as number;
}
