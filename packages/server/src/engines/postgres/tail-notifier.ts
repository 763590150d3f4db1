import { setTimeout as delay } from 'node:timers/promises';
import type { LogSchema } from './log-schema.ts';
import type { SessionKeeper } from './session-keeper.ts';

/**
 * Others are told of an entry so much later, and of those that follow it meanwhile. Whoever waits for one of them is
 * told by the leader (`LogEngine.lookNow`), and comes first.
 */
const delayMs = 2;

/**
 * Tells other servers, through the database, that the log has grown: a hint, which may be lost. It is not part of the
 * append: a commit with a notification wakes all who listen before its own answer leaves, and holds up every other
 * notification of the database until it is on disk. So it follows the append on the connection for reading, one
 * notification at a time, and those that become due meanwhile are one.
 */
export class TailNotifier {
  readonly #channel: string;
  readonly #keeper: SessionKeeper;
  #isDue = false;
  #isRunning = false;

  constructor(schema: LogSchema, keeper: SessionKeeper) {
    this.#channel = schema.channel;
    this.#keeper = keeper;
  }

  /** Returns at once; whoever waits for the append is answered first. */
  tell(): void {
    this.#isDue = true;
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    // The hint is worth no wait for the disk: what it points to is durable already.
    const text = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '')`;
    try {
      while (this.#isDue) {
        await delay(delayMs, undefined, { ref: false });
        this.#isDue = false;
        const session = await this.#keeper.nowOrNextTry();
        await session.query({ name: 'tenure_notify', text, values: [this.#channel] });
      }
    } catch {
      // Others look for themselves before long.
    } finally {
      this.#isRunning = false;
    }
  }
}
