import type { KeyOracle } from '../keys/key-oracle.ts';
import type { WatchRequest } from './watch-observation.ts';
import { WatchObserver } from './watch-observer.ts';

/**
 * Judges watches by the log: W1 (filter), W2 (ordered), W3 (unique), W4 (atomic), W5 (bookmarkable), W6 (resumable),
 * W7 (reliable), W8 (isCreate and prevKV), W9 (a slow watcher), W10 (compaction), W11 (a start in the future), A4
 * (nothing that is not durable) and L4 (the keys of an ended lease). W12, the end of a watch when its rights are
 * revoked, is judged by access/access-checker.ts.
 */
export class WatchChecker {
  readonly oracle: KeyOracle;
  readonly violations: string[] = [];
  readonly #nowMs: () => number;
  readonly #observers: WatchObserver[] = [];

  constructor(nowMs: () => number, oracle: KeyOracle) {
    this.#nowMs = nowMs;
    this.oracle = oracle;
  }

  /** A new watch. `name` is for reports. */
  observe(name: string, request: WatchRequest): WatchObserver {
    const violated = (rule: string, what: string): void => {
      this.violations.push(`${rule} at ${Math.round(this.#nowMs())} ms: ${name}: ${what}`);
    };
    const observer = new WatchObserver(request, this.oracle, violated);
    this.#observers.push(observer);
    return observer;
  }

  /** At the end, when every server and client had time for everything up to `revision`: each watch has seen it. */
  finish(revision: number): void {
    for (const observer of this.#observers) observer.finish(revision);
  }
}
