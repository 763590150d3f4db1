import type { LineWatch } from '../backend/lease-backend.ts';
import { LineWatches } from '../backend/line-watches.ts';
import { onAbort } from '../time/on-abort.ts';
import { sleep } from '../time/sleep.ts';
import { systemClock } from '../time/system-clock.ts';
import type { PostgresListenClient } from './postgres-pool.ts';

/** Of NOTIFY, for all names: what it carries is the name that changed. */
export const channel = 'tenure_leases';
const reconnectFirstMs = 100;
const reconnectMaxMs = 5_000;
/** A connection that was cut without a word is found out by asking it something from time to time. */
const heartbeatMs = 10_000;
const answerMs = 5_000;

export type OpenListenClient = () => PostgresListenClient | Promise<PostgresListenClient>;

/**
 * Hints of changes by LISTEN, for every watch over one connection. It connects when the first watch begins, again
 * whenever the connection breaks, and then hints to all, since what came in between was lost.
 */
export class NoticeListener {
  readonly #open: OpenListenClient;
  readonly #watches = new LineWatches();
  readonly #closed = new AbortController();
  #isRunning = false;

  constructor(open: OpenListenClient) {
    this.#open = open;
  }

  watch(name: string, onChange: () => void): LineWatch {
    if (this.#closed.signal.aborted) return { close: () => undefined };
    if (!this.#isRunning) {
      this.#isRunning = true;
      void this.#run();
    }
    return this.#watches.add(name, onChange);
  }

  close(): void {
    this.#watches.clear();
    this.#closed.abort();
  }

  /** Ends only when it is closed. Nothing that fails in it can reach anybody: it is tried again. */
  async #run(): Promise<void> {
    let pauseMs = reconnectFirstMs;
    while (!this.#closed.signal.aborted) {
      const listensSinceMs = await this.#listenUntilBroken().catch(() => undefined);
      if (listensSinceMs !== undefined) pauseMs = reconnectFirstMs;
      await sleep(systemClock, pauseMs, this.#closed.signal);
      pauseMs = Math.min(2 * pauseMs, reconnectMaxMs);
    }
  }

  /** Resolves when a connection that stood has broken; rejects when none came to stand. */
  async #listenUntilBroken(): Promise<true> {
    const client = await this.#open();
    let isBroken = false;
    let wake = (): void => undefined;
    const broken = (): void => {
      isBroken = true;
      wake();
    };
    client.on('error', broken);
    client.on('end', broken);
    client.on('notification', ({ channel: of, payload }) => {
      if (of === channel && payload !== undefined) this.#watches.hint(payload);
    });
    const forget = onAbort(this.#closed.signal, broken);
    unref(client);
    try {
      await answered(client.connect());
      await answered(client.query(`LISTEN ${channel}`));
      this.#watches.hintAll();
      while (!isBroken) {
        await new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, heartbeatMs).unref();
        });
        if (!isBroken) await answered(client.query('SELECT 1')).catch(broken);
      }
      return true;
    } finally {
      forget();
      // The end of a connection that gives no answer comes late or never, and nobody waits for it.
      void Promise.resolve(client.end()).catch(() => undefined);
    }
  }
}

/** What does not answer in time counts as broken. */
async function answered<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${answerMs} ms`)), answerMs).unref();
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A connection that only listens keeps no process alive. */
function unref(client: PostgresListenClient): void {
  if ('unref' in client && typeof client.unref === 'function') client.unref();
}
