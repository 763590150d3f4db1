import type { Schedule } from '@tenure/test-support';

/** What happened in one simulated world, one line an event: virtual time, who, what. Unprinted lines cost nothing. */
export class Trace {
  readonly #schedule: Schedule;
  readonly #print: ((line: string) => void) | undefined;

  constructor(schedule: Schedule, print?: (line: string) => void) {
    this.#schedule = schedule;
    this.#print = print;
  }

  get isPrinted(): boolean {
    return this.#print !== undefined;
  }

  note(who: string, what: () => string): void {
    this.#print?.(`${this.#schedule.nowMs.toFixed(1).padStart(9)} ms  ${who.padEnd(10)} ${what()}`);
  }
}
