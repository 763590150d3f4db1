import { channel } from './notification-listener.ts';
import type { StatementRunner } from './statement-runner.ts';

/** The time limit of a notification. A waiter that misses one polls anyway. */
const sendAtMostMs = 1_000;
/** The delay of a notification that is not urgent, so that it can be sent along with others. */
const soonMs = 10;

/**
 * PostgreSQL commits transactions with NOTIFY one at a time, each with its sync to disk. So notifications have a
 * transaction of their own with asynchronous commit. A crash may lose one, but then the listeners lose their
 * connections too, and read again after they have reconnected.
 */
const notify = `SELECT set_config('synchronous_commit', 'off', true), pg_notify('${channel}', name)
FROM unnest($1::text[]) AS name`;

/**
 * Notifies listeners in all processes of changed names, after the change was committed. One statement is in flight at a
 * time, and the next one carries all names that changed meanwhile. A notification may be lost.
 */
export class NotificationSender {
  readonly #runner: StatementRunner;
  readonly #names = new Set<string>();
  #inFlight: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #isTimed = false;

  constructor(runner: StatementRunner) {
    this.#runner = runner;
  }

  /** Resolves when the notification was sent or has failed. Never rejects. */
  notify(name: string): Promise<void> {
    this.#names.add(name);
    return this.#send();
  }

  /** Sends the name along with the next notification, or after a short delay. */
  notifySoon(name: string): void {
    this.#names.add(name);
    if (this.#isTimed) return;
    this.#isTimed = true;
    setTimeout(() => {
      this.#isTimed = false;
      if (this.#names.size > 0) void this.#send();
    }, soonMs).unref();
  }

  #send(): Promise<void> {
    this.#next ??= this.#inFlight.then(() => this.#sendAll());
    return this.#next;
  }

  #sendAll(): Promise<void> {
    const names = [...this.#names];
    this.#names.clear();
    this.#next = undefined;
    this.#inFlight = this.#runner.run(notify, [names], AbortSignal.timeout(sendAtMostMs)).then(ignore, ignore);
    return this.#inFlight;
  }
}

function ignore(): void {}
