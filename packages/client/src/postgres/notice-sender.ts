import { channel } from './notice-listener.ts';
import type { StatementRunner } from './statement-runner.ts';

/** A notice is worth no more than this: who misses it looks again by itself. */
const sendAtMostMs = 1_000;
/** For what nobody waits in line for. In this time it mostly finds another notice to go with. */
const soonMs = 10;

/**
 * PostgreSQL lets transactions that notify commit one at a time, each with its write to the disk. So the notices go in
 * a transaction of their own that waits for no disk: those that lose one in a crash have lost their connection too,
 * and look again when they have a new one.
 */
const notify = `SELECT set_config('synchronous_commit', 'off', true), pg_notify('${channel}', name)
FROM unnest($1::text[]) AS name`;

/**
 * Tells listeners in all processes which names have changed, after the change was committed. One statement is under way
 * at a time, and the next one tells of all that came meanwhile: of no more names than calls were made. It may be lost.
 */
export class NoticeSender {
  readonly #runner: StatementRunner;
  readonly #names = new Set<string>();
  #underWay: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #isTimed = false;

  constructor(runner: StatementRunner) {
    this.#runner = runner;
  }

  /** Resolves when listeners have been told, or nothing more is done about it. Never rejects. */
  tell(name: string): Promise<void> {
    this.#names.add(name);
    return this.#send();
  }

  /** With the next notice of any kind, or with one of its own. */
  tellSoon(name: string): void {
    this.#names.add(name);
    if (this.#isTimed) return;
    this.#isTimed = true;
    setTimeout(() => {
      this.#isTimed = false;
      if (this.#names.size > 0) void this.#send();
    }, soonMs).unref();
  }

  #send(): Promise<void> {
    this.#next ??= this.#underWay.then(() => this.#sendAll());
    return this.#next;
  }

  #sendAll(): Promise<void> {
    const names = [...this.#names];
    this.#names.clear();
    this.#next = undefined;
    this.#underWay = this.#runner.run(notify, [names], AbortSignal.timeout(sendAtMostMs)).then(ignore, ignore);
    return this.#underWay;
  }
}

function ignore(): void {}
