import { readFileSync } from 'node:fs';

/** A timer is asked for this often; what it comes late by, beyond the ordinary, is a stall. */
const tickMs = 10;
const ordinaryLatenessMs = 20;
/** The processes are looked at this often. */
const sampleMs = 50;
const nsPerMs = 1_000_000;

interface Stall {
  readonly endMs: number;
  readonly lengthMs: number;
}

interface Sample {
  readonly atMs: number;
  /** By process: how long it has waited for a processor by then, all in all. */
  readonly waitedMs: ReadonlyMap<number, number>;
}

/**
 * What this machine owes to a test. Bounds that the servers must keep are stated for a machine that has time for them;
 * on one that stands still, or that gives its processors to others, servers are late however good they are. So a test
 * allows them, within the time that it measures, its own stalls (it could not run although a timer of it was due), and
 * what at each time the worst off of the servers has waited for a processor though it had work, as Linux counts it.
 * On an idle machine both are next to nothing; and neither grows because a server is slow.
 */
export class StallMeter {
  readonly #pids: () => readonly number[];
  readonly #stalls: Stall[] = [];
  readonly #samples: Sample[] = [];
  readonly #timer: NodeJS.Timeout;
  #dueMs = performance.now() + tickMs;

  /** `pids`: of the servers that run now. */
  constructor(pids: () => readonly number[]) {
    this.#pids = pids;
    this.#sample(performance.now());
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  /** What was owed between two moments of performance.now(), in milliseconds. */
  between(fromMs: number, toMs: number): number {
    this.#tick();
    let owedMs = 0;
    for (const { endMs, lengthMs } of this.#stalls) {
      owedMs += Math.max(0, Math.min(endMs, toMs) - Math.max(endMs - lengthMs, fromMs));
    }
    for (let at = 1; at < this.#samples.length; at += 1) {
      const [before, after] = [this.#samples[at - 1] as Sample, this.#samples[at] as Sample];
      if (after.atMs > fromMs && before.atMs < toMs) owedMs += worstWait(before, after);
    }
    return owedMs;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const nowMs = performance.now();
    const lateMs = nowMs - this.#dueMs;
    if (lateMs < 0) return;
    if (lateMs > ordinaryLatenessMs) this.#stalls.push({ endMs: nowMs, lengthMs: lateMs });
    this.#dueMs = nowMs + tickMs;
    if (nowMs - (this.#samples.at(-1)?.atMs ?? 0) >= sampleMs) this.#sample(nowMs);
  }

  #sample(atMs: number): void {
    this.#samples.push({ atMs, waitedMs: new Map(this.#pids().map((pid) => [pid, waitedMs(pid)])) });
  }
}

/** What the worst off of those that ran at both times has waited in between. */
function worstWait(before: Sample, after: Sample): number {
  const waits = [...after.waitedMs].map(([pid, waited]) => waited - (before.waitedMs.get(pid) ?? waited));
  return Math.max(0, ...waits);
}

/**
 * How long the event loop of a process has been ready to run and was not let; 0 when it has ended, or where the system
 * does not say.
 */
function waitedMs(pid: number): number {
  try {
    const [, waitedNs] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
    return Number(waitedNs) / nsPerMs;
  } catch {
    return 0;
  }
}
