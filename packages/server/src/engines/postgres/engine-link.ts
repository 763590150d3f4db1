import { escapeIdentifier } from 'pg';
import { AppendSessions } from './append-sessions.ts';
import { DurableTail } from './durable-tail.ts';
import { EngineError } from '../engine-error.ts';
import type { EngineState } from '../engine-health.ts';
import type { LogSchema } from './log-schema.ts';
import type { PostgresAddress } from './postgres-address.ts';
import { describeFailure, troubleOf } from './postgres-failure.ts';
import { acknowledgedIn } from './tail-notifier.ts';
import type { PostgresSession } from './postgres-session.ts';
import { openPrimarySession } from './primary-session.ts';
import { PersistentSession } from './persistent-session.ts';
import { TailHint } from './tail-hint.ts';

export interface EngineLinkOptions {
  readonly address: PostgresAddress;
  readonly schema: LogSchema;
  readonly onState: (state: EngineState) => void;
}

/** The permanent connections of one engine: one for appends, one for reads and notifications. */
export class EngineLink {
  readonly hint = new TailHint();
  /** The durable end of the log. */
  readonly durable: DurableTail;
  readonly appends: PersistentSession;
  readonly reads: PersistentSession;
  readonly #options: EngineLinkOptions;
  readonly #poll: NodeJS.Timeout;
  readonly #schemaWatch: NodeJS.Timeout;
  /** Why each of the two is down, if it is. */
  readonly #reasons = new Map<string, unknown>();
  #isUp = true;

  private constructor(
    options: EngineLinkOptions,
    durable: DurableTail,
    sessions: AppendSessions,
    append: PostgresSession,
    read: PostgresSession,
  ) {
    this.#options = options;
    this.durable = durable;
    this.#listen(read);
    this.appends = this.#keep('append', append, (signal) => sessions.open(signal));
    this.reads = this.#keep('read', read, async (signal) => {
      const session = await openReadSession(options, signal);
      this.#listen(session);
      return session;
    });
    const { pollIntervalMs, schemaCheckIntervalMs } = options.address.timing;
    this.#poll = setInterval(() => this.hint.give(), pollIntervalMs);
    this.#schemaWatch = setInterval(() => void this.#checkSchema(), schemaCheckIntervalMs);
  }

  /** Rejects with the error of the first connection attempt. */
  static async open(options: EngineLinkOptions, signal: AbortSignal): Promise<EngineLink> {
    const { address, schema } = options;
    let known = (): void => undefined;
    const durable = new DurableTail(address, schema, () => known());
    let append: PostgresSession | undefined;
    try {
      const sessions = new AppendSessions(address, schema, durable);
      append = await sessions.open(signal);
      const read = await openReadSession(options, signal);
      const link = new EngineLink(options, durable, sessions, append, read);
      known = () => link.hint.give();
      return link;
    } catch (error) {
      durable.close();
      await append?.end();
      throw error;
    }
  }

  get address(): PostgresAddress {
    return this.#options.address;
  }

  /** A session for long operations; the caller ends it. */
  async openStoreSession(signal: AbortSignal): Promise<PostgresSession> {
    const { address, schema } = this.#options;
    const session = await openPrimarySession(address, 'store', signal);
    try {
      await schema.check(session);
      return session;
    } catch (error) {
      await session.end();
      throw error;
    }
  }

  /** Checks whether a newer Tenure has upgraded the schema while the connections were open. */
  async #checkSchema(): Promise<void> {
    try {
      const session = await this.reads.nowOrNextTry();
      await this.#options.schema.check(session);
    } catch (error) {
      await this.#endIfUnusable(error).catch(() => undefined);
    }
  }

  /**
   * An older program must not write to a newer schema, and waiting does not change that: the engine ends with the
   * reason.
   */
  async #endIfUnusable(error: unknown): Promise<never> {
    if (error instanceof EngineError && error.code === 'unusable') {
      this.#options.onState({ reachable: false, trouble: troubleOf(error), reason: error.message });
      this.appends.end(error);
      this.reads.end(error);
      this.hint.give();
    }
    throw error;
  }

  async close(): Promise<void> {
    clearInterval(this.#schemaWatch);
    clearInterval(this.#poll);
    this.hint.give();
    this.durable.close();
    await Promise.all([this.appends.close(), this.reads.close()]);
  }

  #listen(session: PostgresSession): void {
    session.onNotification((payload) => {
      const acknowledged = acknowledgedIn(payload);
      if (acknowledged !== undefined) this.durable.vouchedFor(acknowledged);
      this.hint.give();
    });
    this.hint.give();
  }

  #keep(
    purpose: string,
    session: PostgresSession,
    open: (signal: AbortSignal) => Promise<PostgresSession>,
  ): PersistentSession {
    return new PersistentSession(session, {
      open: (signal) => open(signal).catch((error: unknown) => this.#endIfUnusable(error)),
      onDown: (error) => {
        this.#reasons.set(purpose, error);
        this.#report();
      },
      onUp: () => {
        this.#reasons.delete(purpose);
        this.#report();
      },
    });
  }

  #report(): void {
    const isUp = this.#reasons.size === 0;
    if (isUp && this.#isUp) return;
    this.#isUp = isUp;
    const [error] = this.#reasons.values();
    this.#options.onState(
      isUp ? { reachable: true } : { reachable: false, trouble: troubleOf(error), reason: describeFailure(error) },
    );
  }
}

async function openReadSession(options: EngineLinkOptions, signal: AbortSignal): Promise<PostgresSession> {
  const { address, schema } = options;
  const session = await openPrimarySession(address, 'read', signal);
  try {
    await schema.check(session);
    await session.query({ text: `LISTEN ${escapeIdentifier(schema.channel)}` });
    return session;
  } catch (error) {
    session.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
}
