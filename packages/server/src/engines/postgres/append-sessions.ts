import type { DurableTail } from './durable-tail.ts';
import { endBackend } from './end-backend.ts';
import type { LogSchema } from './log-schema.ts';
import type { PostgresAddress } from './postgres-address.ts';
import type { Backend, PostgresSession } from './postgres-session.ts';
import { openPrimarySession } from './primary-session.ts';

/**
 * Opens the sessions for appends, one after the other. A new one is returned only when the backend of the previous one
 * has ended and its commits are durable: an append whose outcome was unknown then has its outcome.
 */
export class AppendSessions {
  readonly #address: PostgresAddress;
  readonly #schema: LogSchema;
  readonly #durable: DurableTail;
  #before: Backend | undefined;

  constructor(address: PostgresAddress, schema: LogSchema, durable: DurableTail) {
    this.#address = address;
    this.#schema = schema;
    this.#durable = durable;
  }

  async open(signal: AbortSignal): Promise<PostgresSession> {
    const session = await openPrimarySession(this.#address, 'append', signal);
    try {
      if (this.#before !== undefined) await endBackend(session, this.#before, { exceptSyncRep: true });
      await this.#schema.check(session);
      await this.#durable.prove();
      this.#before = session.backend;
      return session;
    } catch (error) {
      session.destroy(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }
}
