import { setTimeout as delay } from 'node:timers/promises';
import type { Position } from '../log-engine.ts';
import type { LogSchema } from './log-schema.ts';
import type { SessionKeeper } from './session-keeper.ts';

/**
 * Others are told of an entry so much later, and of those that follow it meanwhile. Whoever waits for one of them is
 * told by the leader (`LogEngine.lookNow`), and comes first.
 */
const delayMs = 2;

/**
 * Where an append ended that was acknowledged, as a notification tells it; undefined for one of an older version, or of
 * somebody else. That it is of this log is seen by its hash.
 */
export function acknowledgedIn(payload: string): Position | undefined {
  const [, index, hash] = /^(\d{1,15}) ([0-9a-f]{32})$/.exec(payload) ?? [];
  return index === undefined || hash === undefined ? undefined : { index: Number(index), hash };
}

/**
 * Tells other servers, through the database, that the log has grown: a hint, which may be lost, and that
 * the append was acknowledged. It is not part of the
 * append: a commit with a notification wakes all who listen before its own answer leaves, and holds up every other
 * notification of the database until it is on disk. So it follows the append on the connection for reading, one
 * notification at a time, and those that become due meanwhile are one.
 */
export class TailNotifier {
  readonly #channel: string;
  readonly #keeper: SessionKeeper;
  /** Where the last append ended that others have not been told of. */
  #due: Position | undefined;
  #isRunning = false;

  constructor(schema: LogSchema, keeper: SessionKeeper) {
    this.#channel = schema.channel;
    this.#keeper = keeper;
  }

  /** An append was acknowledged. Returns at once; whoever waits for it is answered first. */
  tell(end: Position): void {
    this.#due = end;
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    // The hint is worth no wait for the disk: what it points to is durable already.
    const text = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`;
    try {
      while (this.#due !== undefined) {
        await delay(delayMs, undefined, { ref: false });
        const { index, hash } = this.#due;
        this.#due = undefined;
        const session = await this.#keeper.nowOrNextTry();
        await session.query({ name: 'tenure_notify', text, values: [this.#channel, `${index} ${hash}`] });
      }
    } catch {
      // Others look for themselves before long.
      this.#due = undefined;
    } finally {
      this.#isRunning = false;
    }
  }
}
