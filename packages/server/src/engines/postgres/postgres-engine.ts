import { EngineError } from '../engine-error.ts';
import type { EngineState } from '../engine-health.ts';
import type { Acknowledged, LoggedEntry, Position, SharedLogEngine, StoredSnapshot } from '../log-engine.ts';
import { AppendWatch } from './append-watch.ts';
import { EngineLink } from './engine-link.ts';
import { LogAppender } from './log-appender.ts';
import { LogReader } from './log-reader.ts';
import { LogSchema } from './log-schema.ts';
import { LogSize } from './log-size.ts';
import { parsePostgresAddress } from './postgres-address.ts';
import type { PostgresAddress } from './postgres-address.ts';
import { openingRefused, sqlStateOf, unavailable } from './postgres-failure.ts';
import type { PostgresSession } from './postgres-session.ts';
import { defaultTiming } from './postgres-timing.ts';
import type { PostgresTiming } from './postgres-timing.ts';
import { openPrimarySession } from './primary-session.ts';
import { noticeSettings } from './settings-notice.ts';
import { SnapshotTable } from './snapshot-table.ts';
import { TailNotifier } from './tail-notifier.ts';

/** Operations in progress at close may take this long; then their connection is broken off. */
const closeTimeoutMs = 5_000;
const measureIntervalMs = 60_000;

export interface PostgresEngineOptions {
  /** postgres://user@host:port,host:port/database; of several hosts the primary is used. */
  readonly url: string;
  /** The schema of this log, created if it does not exist. `tenure` by default. */
  readonly schema?: string;
  /** Refuse a database without the schema. False by default. */
  readonly mustExist?: boolean;
  /** A followed chunk holds no more bytes than this, except that it holds at least one entry. 1 MiB by default. */
  readonly maxFollowBytes?: number;
  /** Receives warnings about dangerous settings of the database, for the operator's log. */
  readonly onNotice?: (notice: string) => void;
  /**
   * Called with `down` and a reason when a connection to the database is lost, and again for each failed reconnect;
   * called with `up` once all are open. The engine starts as up, without a call.
   */
  readonly onState?: (state: EngineState) => void;
  /** For tests that lose a database on purpose: other timeouts than the defaults. */
  readonly timing?: Partial<PostgresTiming>;
}

/**
 * Opens the log in a schema of a PostgreSQL database. Several servers may have it open at once.
 *
 * Rejects with EngineError `unusable` (a wrong URL, database, user or privilege, a schema of a newer version or with
 * other contents) or `unavailable` (no host answers). Once open it survives every loss of the database: `follow` waits
 * and continues, the other calls reject with `unavailable`, an append that may have been sent with `unknown`. A
 * `follow` or `tail` that is begun after an `unknown` answers when the outcome of that append is final: an entry that
 * is not in the log by then will never be, and an entry in the log is durable. When a newer Tenure has upgraded the
 * schema, every call rejects with `unusable` from then on, including waiting calls: the engine has ended.
 */
export async function openPostgresEngine(options: PostgresEngineOptions): Promise<SharedLogEngine> {
  const address = parsePostgresAddress(options.url, { ...defaultTiming, ...options.timing });
  const schema = new LogSchema(options.schema ?? 'tenure');
  const signal = new AbortController().signal;
  try {
    await prepareDatabase(address, schema, options, signal);
    const link = await EngineLink.open({ address, schema, onState: options.onState ?? (() => undefined) }, signal);
    const engine = new PostgresEngine(link, schema, options.maxFollowBytes ?? 1024 * 1024);
    await engine.measure().catch(async (error: unknown) => {
      await engine.close();
      throw error;
    });
    return engine;
  } catch (error) {
    throw openingRefused(error);
  }
}

async function prepareDatabase(
  address: PostgresAddress,
  schema: LogSchema,
  { mustExist = false, onNotice = () => undefined }: PostgresEngineOptions,
  signal: AbortSignal,
): Promise<void> {
  const session = await openPrimarySession(address, 'start', signal);
  try {
    if (!mustExist) await schema.prepare(session);
    else if (!(await schema.check(session))) {
      throw new EngineError('unusable', `the database has no log of Tenure in the schema ${schema.name}`);
    }
    await noticeSettings(session, onNotice);
  } finally {
    await session.end();
  }
}

class PostgresEngine implements SharedLogEngine {
  readonly name = 'postgres';
  readonly isShared = true;
  readonly #link: EngineLink;
  readonly #appender: LogAppender;
  readonly #notifier: TailNotifier;
  readonly #reader: LogReader;
  readonly #snapshots: SnapshotTable;
  readonly #size: LogSize;
  readonly #measuring: NodeJS.Timeout;
  readonly #closed = new AbortController();
  #appending: Promise<Position> | undefined;
  #tidying: Promise<void> = Promise.resolve();
  #saving = false;
  /** The last reported entry. */
  #told: LoggedEntry | undefined;
  #closing: Promise<void> | undefined;

  constructor(link: EngineLink, schema: LogSchema, maxFollowBytes: number) {
    this.#link = link;
    this.#appender = new LogAppender(schema, link.appends, new AppendWatch(link.address));
    this.#notifier = new TailNotifier(schema, link.reads);
    this.#reader = new LogReader(schema, link.reads, link.durable, maxFollowBytes);
    this.#snapshots = new SnapshotTable(schema);
    this.#size = new LogSize(schema);
    this.#measuring = setInterval(() => void this.measure().catch(() => undefined), measureIntervalMs);
  }

  async append(batch: readonly Uint8Array[], after: Position): Promise<Position> {
    this.#check();
    if (this.#appending !== undefined) throw new Error('an append was begun while another one is in progress');
    this.#appending = this.#appender.append(batch, after);
    try {
      const end = await this.#appending;
      for (const entry of batch) this.#size.wrote(entry.length);
      this.#link.durable.vouchedFor(end);
      this.#notifier.tell(end);
      return end;
    } finally {
      this.#appending = undefined;
      this.#link.hint.give();
    }
  }

  async *follow(from: Position, signal: AbortSignal): AsyncGenerator<readonly LoggedEntry[]> {
    this.#check();
    const { hint, appends } = this.#link;
    const cursor = this.#reader.cursor(from);
    try {
      await appends.whenUp(signal);
      while (!signal.aborted) {
        this.#check();
        const seen = hint.count;
        const told = cursor.take(this.#told);
        const chunk = told ?? (await this.#reader.ask((session) => cursor.next(session), signal));
        if (signal.aborted) return;
        if (chunk.length > 0) yield chunk;
        if (cursor.hasSeenTail) await hint.past(seen, signal);
      }
    } catch (error) {
      if (!signal.aborted || error !== signal.reason) throw error;
    }
  }

  lookNow(acknowledged?: Acknowledged): void {
    if (acknowledged !== undefined) {
      const { position, bytes } = acknowledged;
      this.#told = bytes === undefined ? undefined : { position, bytes };
      this.#link.durable.vouchedFor(position);
    }
    this.#link.hint.give();
  }

  async tail(): Promise<Position> {
    this.#check();
    await this.#link.appends.nowOrNextTry();
    return this.#link.durable.prove().catch((error: unknown) => {
      this.#check();
      throw error instanceof EngineError ? error : unavailable('the database did not answer', error);
    });
  }

  saveSnapshot(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#save((session) => this.#snapshots.save(session, position, chunks, () => this.#check()));
  }

  seed(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#save((session) => this.#snapshots.seed(session, position, chunks, () => this.#check()));
  }

  async #save(work: (session: PostgresSession) => Promise<number>): Promise<void> {
    this.#check();
    if (this.#saving) throw new Error('a snapshot was begun while another one is being saved');
    this.#saving = true;
    try {
      await this.#tidy(async (session) => this.#size.wrote(await work(session)));
    } finally {
      this.#saving = false;
    }
  }

  async loadSnapshot(): Promise<StoredSnapshot | undefined> {
    this.#check();
    return this.#snapshots.load((query) => {
      this.#check();
      return this.#reader.ask((session) => session.query(query), this.#closed.signal);
    });
  }

  async trim(index: number): Promise<void> {
    this.#check();
    await this.#tidy((session) => this.#snapshots.trim(session, index, () => this.#check()));
  }

  sizeBytes(): number {
    return this.#size.bytes;
  }

  async measure(): Promise<void> {
    await this.#askNow((session) => this.#size.measure(session));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const closed = new EngineError('closed', 'the log engine is closed');
    this.#closed.abort(closed);
    clearInterval(this.#measuring);
    const timer = setTimeout(() => this.#link.appends.breakOff(closed), closeTimeoutMs);
    await Promise.allSettled([this.#appending, this.#tidying]);
    clearTimeout(timer);
    await this.#link.close();
  }

  async #askNow<Answer>(ask: (session: PostgresSession) => Promise<Answer>): Promise<Answer> {
    const session = await this.#link.reads.nowOrNextTry();
    return ask(session).catch((error: unknown) => {
      throw error instanceof EngineError ? error : unavailable('the database did not answer', error);
    });
  }

  /** Snapshots and trims run one after the other, each on a separate connection, in parallel with appends. */
  #tidy(work: (session: PostgresSession) => Promise<void>): Promise<void> {
    const done = this.#tidying.then(async () => {
      this.#check();
      const session = await this.#openStore();
      try {
        await work(session).catch((error: unknown) => {
          if (session.lostBecause !== undefined) throw unavailable('the database was lost', session.lostBecause);
          // The database may report the reason before it closes the connection. No part of this work is visible until
          // its last statement, so a refused operation has had no effect.
          throw sqlStateOf(error) === undefined ? error : unavailable('the database refused', error);
        });
      } finally {
        if (session.lostBecause === undefined) await this.#snapshots.sweep(session).catch(() => undefined);
        await session.end();
      }
    });
    this.#tidying = done.catch(() => undefined);
    return done;
  }

  async #openStore(): Promise<PostgresSession> {
    try {
      return await this.#link.openStoreSession(this.#closed.signal);
    } catch (error) {
      this.#check();
      throw error instanceof EngineError ? error : unavailable('the database cannot be reached', error);
    }
  }

  #check(): void {
    this.#closed.signal.throwIfAborted();
  }
}
