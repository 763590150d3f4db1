import { setTimeout as delay } from 'node:timers/promises';
import type { LogSchema } from './log-schema.ts';
import { awaitDurability } from './read-tail.ts';
import type { PostgresAddress } from './postgres-address.ts';
import type { Backend, PostgresSession } from './postgres-session.ts';
import { openPrimarySession } from './primary-session.ts';

/** A backend that was told to end looks for that at least each time it waits. */
const backendEndMs = 3_000;
const backendPollMs = 10;

/**
 * Opens sessions to append on, one after the other. A new one is handed out when the backend of the one before has
 * ended and what it committed is durable: an append whose outcome was unknown has its outcome by then.
 */
export class AppendSessions {
  readonly #address: PostgresAddress;
  readonly #schema: LogSchema;
  #before: Backend | undefined;

  constructor(address: PostgresAddress, schema: LogSchema) {
    this.#address = address;
    this.#schema = schema;
  }

  async open(signal: AbortSignal): Promise<PostgresSession> {
    const session = await openPrimarySession(this.#address, 'append', signal);
    try {
      if (this.#before !== undefined) await endBackend(session, this.#before);
      await this.#schema.check(session);
      await awaitDurability(session);
      this.#before = session.backend;
      return session;
    } catch (error) {
      session.destroy(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }
}

/** On another host than that of the backend there is none to be found, and none that could still write here. */
async function endBackend(session: PostgresSession, { pid, applicationName }: Backend): Promise<void> {
  const text = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2`;
  const giveUpAt = performance.now() + backendEndMs;
  while ((await session.query({ text, values: [pid, applicationName] })).length > 0) {
    if (performance.now() > giveUpAt) throw new Error(`the backend ${pid} of a broken append does not end`);
    await delay(backendPollMs);
  }
}
