import type { QueueWatch } from '../backend/lease-backend.ts';
import { QueueWatches } from '../backend/queue-watches.ts';
import { onAbort } from '../time/on-abort.ts';
import { sleep } from '../time/sleep.ts';
import { systemClock } from '../time/system-clock.ts';
import type { PostgresListenClient } from './postgres-pool.ts';

/** The NOTIFY channel for all names. The payload is the name that changed. */
export const channel = 'tenure_leases';
const reconnectFirstMs = 100;
const reconnectMaxMs = 5_000;
/** How often the connection is checked with a query, because a half-open connection reports no error. */
const heartbeatMs = 10_000;
const answerMs = 5_000;

export type OpenListenClient = () => PostgresListenClient | Promise<PostgresListenClient>;

/**
 * Hints of changes by LISTEN, for all watches over one connection. It connects when the first watch begins and
 * reconnects whenever the connection breaks. Then all watches get a hint, because notifications in between were lost.
 */
export class NotificationListener {
  readonly #open: OpenListenClient;
  readonly #watches = new QueueWatches();
  readonly #closed = new AbortController();
  #isRunning = false;

  constructor(open: OpenListenClient) {
    this.#open = open;
  }

  watch(name: string, onChange: () => void): QueueWatch {
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

  /** Ends only when it is closed. Failures are not reported, only retried. */
  async #run(): Promise<void> {
    let pauseMs = reconnectFirstMs;
    while (!this.#closed.signal.aborted) {
      const listensSinceMs = await this.#listenUntilBroken().catch(() => undefined);
      if (listensSinceMs !== undefined) pauseMs = reconnectFirstMs;
      await sleep(systemClock, pauseMs, this.#closed.signal);
      pauseMs = Math.min(2 * pauseMs, reconnectMaxMs);
    }
  }

  /** Resolves when an established connection has broken; rejects when none could be established. */
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
      // Not awaited, because a connection that does not answer may never end.
      void Promise.resolve(client.end()).catch(() => undefined);
    }
  }
}

/** Rejects when there is no answer in time; the connection then counts as broken. */
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
