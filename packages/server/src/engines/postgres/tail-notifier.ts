import { setTimeout as delay } from 'node:timers/promises';
import type { Position } from '../log-engine.ts';
import type { LogSchema } from './log-schema.ts';
import type { PersistentSession } from './persistent-session.ts';

/**
 * The delay before other servers are notified of an entry, together with the entries after it. A server whose client
 * waits for one of them is notified by the leader (`LogEngine.lookNow`), which is faster.
 */
const delayMs = 2;

/**
 * The end of an acknowledged append, from a notification; undefined for a notification of an older version, or of
 * another program. Its hash proves that it belongs to this log.
 */
export function acknowledgedIn(payload: string): Position | undefined {
  const [, index, hash] = /^(\d{1,15}) ([0-9a-f]{32})$/.exec(payload) ?? [];
  return index === undefined || hash === undefined ? undefined : { index: Number(index), hash };
}

/**
 * Notifies other servers, through the database, that the log has grown: a hint, which may be lost, and that the append
 * was acknowledged. It is not part of the append: a commit with a notification wakes all listeners before its own
 * answer leaves, and holds up every other notification of the database until it is on disk. So it follows the append on
 * the connection for reading, one notification at a time, and notifications that become due meanwhile are merged.
 */
export class TailNotifier {
  readonly #channel: string;
  readonly #persistentSession: PersistentSession;
  /** The end of the last append of which the others have not been notified. */
  #due: Position | undefined;
  #isRunning = false;

  constructor(schema: LogSchema, persistentSession: PersistentSession) {
    this.#channel = schema.channel;
    this.#persistentSession = persistentSession;
  }

  /** An append was acknowledged. Returns at once, so that the waiting client is answered first. */
  tell(end: Position): void {
    this.#due = end;
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    // The hint need not wait for the disk: the entry it points to is already durable.
    const text = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`;
    try {
      while (this.#due !== undefined) {
        await delay(delayMs, undefined, { ref: false });
        const { index, hash } = this.#due;
        this.#due = undefined;
        const session = await this.#persistentSession.nowOrNextTry();
        await session.query({ name: 'tenure_notify', text, values: [this.#channel, `${index} ${hash}`] });
      }
    } catch {
      // The other servers poll soon in any case.
      this.#due = undefined;
    } finally {
      this.#isRunning = false;
    }
  }
}
