import { chainHash } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { LoggedEntry, Position } from '../log-engine.ts';
import type { DurableTail } from './durable-tail.ts';
import type { LogSchema } from './log-schema.ts';
import { checkHolds, positionOf, readTail } from './read-tail.ts';
import type { PostgresSession, SessionQuery } from './postgres-session.ts';
import type { PersistentSession } from './persistent-session.ts';

/** A chunk holds no more entries than this, however small they are. */
const maxChunkEntries = 1_024;

/** Reads the log on the session held by its PersistentSession, and waits while there is none. */
export class LogReader {
  readonly #schema: LogSchema;
  readonly #persistentSession: PersistentSession;
  readonly #maxFollowBytes: number;
  readonly #text: string;

  readonly #durable: DurableTail;

  constructor(schema: LogSchema, persistentSession: PersistentSession, durable: DurableTail, maxFollowBytes: number) {
    this.#durable = durable;
    this.#schema = schema;
    this.#persistentSession = persistentSession;
    this.#maxFollowBytes = maxFollowBytes;
    this.#text = chunkStatement(schema);
  }

  /** A read position in the log: returns the entries after `from` and checks them against the running hash. */
  cursor(from: Position): LogCursor {
    return new LogCursor(from, this.#schema, this.#durable, (at) => this.#chunkQuery(at));
  }

  /**
   * The result of `ask` on the session, repeated on the next one as often as sessions are lost. Errors of an open
   * session are rethrown.
   */
  async ask<Answer>(ask: (session: PostgresSession) => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    for (;;) {
      const session = await this.#persistentSession.whenUp(signal);
      try {
        return await ask(session);
      } catch (error) {
        if (error instanceof EngineError) throw error;
        if (session.lostBecause === undefined) {
          // The database is reachable and refuses: a session with the current primary may succeed.
          session.destroy(error instanceof Error ? error : new Error(String(error)));
        }
      }
    }
  }

  #chunkQuery(at: Position): SessionQuery {
    return { name: 'tenure_chunk', text: this.#text, values: [at.index, maxChunkEntries, this.#maxFollowBytes] };
  }
}

/** The position of one follower. */
class LogCursor {
  #at: Position;
  /** The session on which the log was last confirmed to hold #at. */
  #checkedOn: PostgresSession | undefined;
  #hasSeenTail = false;
  readonly #schema: LogSchema;
  readonly #durable: DurableTail;
  readonly #chunkQuery: (at: Position) => SessionQuery;

  constructor(from: Position, schema: LogSchema, durable: DurableTail, chunkQuery: (at: Position) => SessionQuery) {
    this.#at = from;
    this.#schema = schema;
    this.#durable = durable;
    this.#chunkQuery = chunkQuery;
  }

  /** Whether the last read found nothing more to return: without another hint there is no need to read again. */
  get hasSeenTail(): boolean {
    return this.#hasSeenTail;
  }

  /**
   * A reported entry, if it follows directly: its running hash proves that it belongs to the log that was read here.
   */
  take(told: LoggedEntry | undefined): readonly LoggedEntry[] | undefined {
    if (told === undefined || told.position.index !== this.#at.index + 1) return undefined;
    if (chainHash(this.#at.hash, told.bytes) !== told.position.hash) return undefined;
    this.#at = told.position;
    this.#hasSeenTail = true;
    return [told];
  }

  /** The next entries; none at the end of the log. Throws EngineError `trimmed`, `diverged` or `damaged`. */
  async next(session: PostgresSession): Promise<readonly LoggedEntry[]> {
    if (this.#checkedOn !== session) {
      await checkHolds(session, this.#schema, this.#at);
      this.#checkedOn = session;
    }
    const rows = await session.query(this.#chunkQuery(this.#at));
    const tailIndex = Number(rows[0]?.['tail']);
    const chunk: LoggedEntry[] = [];
    let at = this.#at;
    for (const row of rows) {
      if (row['index'] === null) break;
      const bytes = row['bytes'] as Buffer;
      const stored = positionOf(row['index'], row['hash']);
      const hash = chainHash(at.hash, bytes);
      // The valid entries are returned before the error; the next read begins at the fault.
      if (stored.index !== at.index + 1 || stored.hash !== hash) break;
      at = stored;
      chunk.push({ position: at, bytes });
    }
    // No matching entry where the head has more, or a head that went back: the check tells the two apart.
    if (chunk.length === 0 && tailIndex !== at.index) throw await this.#broken(session, at);
    this.#hasSeenTail = tailIndex === at.index;
    if (this.#hasSeenTail && rows[0]?.['replicates'] === true) this.#withhold(chunk);
    this.#at = chunk.at(-1)?.position ?? this.#at;
    return chunk;
  }

  /**
   * Removes the last entry of the batch, unless it is known to be durable. All entries before it are: a server that
   * appended after an entry had the entry's append acknowledged, or read it here.
   */
  #withhold(chunk: LoggedEntry[]): void {
    const last = chunk.at(-1)?.position;
    if (last === undefined) return;
    const { known } = this.#durable;
    if (known !== undefined && known.index === last.index && known.hash === last.hash) return;
    chunk.pop();
    this.#durable.wanted();
  }

  async #broken(session: PostgresSession, at: Position): Promise<EngineError> {
    await checkHolds(session, this.#schema, at);
    const tail = await readTail(session, this.#schema);
    const place = `entry ${at.index + 1} of ${this.#schema.entries}`;
    const what = `${place} is missing or is not what was appended, and the log ends at ${tail.index}`;
    return new EngineError('damaged', `${what}; restore the schema ${this.#schema.name} from a backup`);
  }
}

/** Whether a commit of this session waits for a standby. If none does, visible entries are as durable as possible. */
const replicates = `(current_setting('synchronous_standby_names') <> ''
  AND current_setting('synchronous_commit') NOT IN ('off', 'local'))`;

/**
 * The end of the log, and the entries after $1 that fit into $3 bytes, the first one regardless of its size, in one
 * database snapshot.
 */
function chunkStatement({ head, entries }: LogSchema): string {
  return `SELECT head.index AS tail, ${replicates} AS replicates, chunk.index, chunk.hash, chunk.bytes
    FROM (SELECT index FROM ${head} ORDER BY index DESC LIMIT 1) AS head
    LEFT JOIN (
      SELECT index, hash, bytes,
        sum(octet_length(bytes)) OVER (ORDER BY index ROWS UNBOUNDED PRECEDING) AS through,
        row_number() OVER (ORDER BY index) AS place
      FROM (
        SELECT index, hash, bytes FROM ${entries} WHERE index > $1 ORDER BY index LIMIT $2
      ) AS next
    ) AS chunk ON chunk.place = 1 OR chunk.through <= $3
    ORDER BY chunk.index`;
}
