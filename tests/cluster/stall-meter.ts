import { readFileSync } from 'node:fs';

/** The interval of the timer. A delay beyond the ordinary is a stall. */
const tickMs = 10;
const ordinaryLatenessMs = 20;
/** The interval of the checks of the processes. */
const sampleMs = 50;
const nsPerMs = 1_000_000;

interface Stall {
  readonly endMs: number;
  readonly lengthMs: number;
}

interface Sample {
  readonly atMs: number;
  /** The total time that each process has waited for a processor, by pid. */
  readonly waitedMs: ReadonlyMap<number, number>;
}

/**
 * Measures by how much the machine delays a test. The bounds of the servers hold on a machine that has time for them.
 * On an overloaded or suspended machine, correct servers are late. So a test adds to its bounds, for the time that it
 * measures, its own stalls (one of its timers was due but it could not run), and at each time the longest wait of any
 * server for a processor, as Linux counts it. On an idle machine both are near zero, and a slow server increases
 * neither.
 */
export class StallMeter {
  readonly #pids: () => readonly number[];
  readonly #stalls: Stall[] = [];
  readonly #samples: Sample[] = [];
  readonly #timer: NodeJS.Timeout;
  #dueMs = performance.now() + tickMs;

  /** `pids`: the servers that run now. */
  constructor(pids: () => readonly number[]) {
    this.#pids = pids;
    this.#sample(performance.now());
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  /** The delay between two values of performance.now(), in milliseconds. */
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

/** The longest wait for a processor between both samples, of the processes in both. */
function worstWait(before: Sample, after: Sample): number {
  const waits = [...after.waitedMs].map(([pid, waited]) => waited - (before.waitedMs.get(pid) ?? waited));
  return Math.max(0, ...waits);
}

/**
 * The total time for which a process's event loop was ready to run but did not get a processor; 0 when it has ended, or
 * where the system does not report it.
 */
function waitedMs(pid: number): number {
  try {
    const [, waitedNs] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
    return Number(waitedNs) / nsPerMs;
  } catch {
    return 0;
  }
}
