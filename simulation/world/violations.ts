import type { Schedule } from '@tenure/test-support';
import type { Trace } from './trace.ts';

/** The violated rules, in order. A rule that is violated again and again fills no more than its share. */
export class Violations {
  readonly all: string[] = [];
  readonly #schedule: Schedule;
  readonly #trace: Trace;

  constructor(schedule: Schedule, trace: Trace) {
    this.#schedule = schedule;
    this.#trace = trace;
  }

  report(rule: string, what: string): void {
    const line = `${rule} at ${Math.round(this.#schedule.nowMs)} ms: ${what}`;
    this.#trace.note('VIOLATION', () => line);
    if (this.all.length < 100) this.all.push(line);
  }
}
