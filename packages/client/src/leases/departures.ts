import type { EntryKey, LeaseBackend } from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Clock } from '../time/clock.ts';
import type { ProcessRef } from '../time/process-ref.ts';
import { attempt } from './attempt.ts';

const leaveLimitMs = 5_000;
/** How often leaving is tried again in the background. After that the end of the entry's life does it. */
const laterAttemptsMax = 5;
const firstDelayMs = 200;

interface DeparturesOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly processRef: ProcessRef;
}

/** Takes entries out of their lines, in the background where nobody waits for it. */
export class Departures {
  readonly #backend: LeaseBackend;
  readonly #clock: Clock;
  readonly #processRef: ProcessRef;
  readonly #underWay = new Set<Promise<void>>();
  #isEnding = false;
  /** Ends every wait between two attempts. */
  readonly #hurry = new Set<() => void>();

  constructor(options: DeparturesOptions) {
    this.#backend = options.backend;
    this.#clock = options.clock;
    this.#processRef = options.processRef;
  }

  /** Whether the entry was there. If that fails it rejects with a BackendError, and goes on in the background. */
  async leave(entry: EntryKey): Promise<boolean> {
    try {
      return await this.#firstAttempt(entry);
    } catch (error) {
      if (isWorthAnother(error)) this.#track(this.#retry(entry));
      throw error;
    }
  }

  /** Begins at once, and reports to nobody. A ticket of 0 stands for one that never came to be known. */
  leaveLater(entry: EntryKey): void {
    if (entry.ticket === 0n) this.#track(this.#leaveUnknown(entry));
    else this.#track(this.leave(entry).then(ignore, ignore));
  }

  /** Resolves when nothing is under way any more. Whatever still fails then is given up. */
  async end(): Promise<void> {
    this.#isEnding = true;
    for (const hurry of this.#hurry) hurry();
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  /** Others would wait for the entry's whole life, so the process stays for this one; not for those that follow it. */
  #firstAttempt(entry: EntryKey): Promise<boolean> {
    return this.#processRef.during(() => this.#attempt(entry));
  }

  #attempt(entry: EntryKey): Promise<boolean> {
    const options = { clock: this.#clock, backend: this.#backend.kind, limitMs: leaveLimitMs };
    return attempt(options, (signal) => this.#backend.leave(entry, signal));
  }

  /** Its `enter` may still be under way and have its effect after a leave that found nothing: so that is no end yet. */
  async #leaveUnknown(entry: EntryKey): Promise<void> {
    try {
      if (await this.#firstAttempt(entry)) return;
    } catch (error) {
      if (!isWorthAnother(error)) return;
    }
    await this.#retry(entry);
  }

  async #retry(entry: EntryKey): Promise<void> {
    for (let tried = 0; tried < laterAttemptsMax; tried++) {
      if (this.#isEnding && tried > 0) return;
      await this.#sleep(firstDelayMs * 2 ** tried);
      try {
        if ((await this.#attempt(entry)) || entry.ticket !== 0n) return;
      } catch (error) {
        if (!isWorthAnother(error)) return;
      }
    }
  }

  async #sleep(delayMs: number): Promise<void> {
    if (this.#isEnding) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        timer.cancel();
        this.#hurry.delete(end);
        resolve();
      };
      const timer = this.#clock.setTimer(delayMs, end);
      this.#hurry.add(end);
    });
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
  }
}

function ignore(): void {}

function isWorthAnother(error: unknown): boolean {
  return error instanceof BackendError && error.backendCode === 'unavailable';
}
