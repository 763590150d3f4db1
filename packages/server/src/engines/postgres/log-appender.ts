import { nextPosition } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import type { LogSchema } from './log-schema.ts';
import { hashBytes, readTail } from './read-tail.ts';
import { describeFailure, troubleOf, unavailable } from './postgres-failure.ts';
import type { PostgresSession, SessionQuery } from './postgres-session.ts';
import type { AppendWatch } from './append-watch.ts';
import type { PersistentSession } from './persistent-session.ts';

/** The maximum size of one statement; PostgreSQL accepts up to a GiB. */
const maxBatchBytes = 256 * 1024 * 1024;

/** Appends batches to the log, one statement each, on the session held by its PersistentSession. */
export class LogAppender {
  readonly #schema: LogSchema;
  readonly #persistentSession: PersistentSession;
  readonly #watch: AppendWatch;
  readonly #text: string;

  constructor(schema: LogSchema, persistentSession: PersistentSession, watch: AppendWatch) {
    this.#schema = schema;
    this.#persistentSession = persistentSession;
    this.#watch = watch;
    this.#text = appendStatement(schema);
  }

  /** See `LogEngine.append`. Rejects with `conflict`, `unknown` or `unavailable`. */
  async append(batch: readonly Uint8Array[], after: Position): Promise<Position> {
    const { query, end } = this.#statement(batch, after);
    const session = await this.#persistentSession.nowOrNextTry();
    session.takeWarning();
    const answer = this.#watch.over(session, session.query(query));
    const rows = await answer.catch((error: unknown) => this.#refused(session, error));
    const warning = session.takeWarning();
    if (warning !== undefined) {
      // The only warning possible here is a commit that gave up waiting for its standby, and yet succeeds.
      session.destroy(new Error(warning));
      throw new EngineError('unknown', `the database committed an append with a warning: ${warning}`, {
        trouble: 'unreplicated',
      });
    }
    if (rows.length === 1) return end;
    const tail = await readTail(session, this.#schema).catch((error: unknown) => {
      throw unavailable('the append was refused, and where the log ends could not be read', error);
    });
    const message = `the log ends at entry ${tail.index}, not at ${after.index} as the append expected`;
    throw new EngineError('conflict', message, { tail });
  }

  #statement(batch: readonly Uint8Array[], after: Position): { query: SessionQuery; end: Position } {
    const offsets: number[] = [];
    const lengths: number[] = [];
    const hashes: Buffer[] = [];
    let end = after;
    let bytes = 0;
    for (const entry of batch) {
      end = nextPosition(end, entry);
      hashes.push(hashBytes(end));
      offsets.push(bytes + 1);
      lengths.push(entry.length);
      bytes += entry.length;
    }
    if (bytes > maxBatchBytes) throw new Error(`an append of ${bytes} bytes is too large for one statement`);
    const values = [
      after.index,
      hashBytes(after),
      end.index,
      hashBytes(end),
      Buffer.concat(batch, bytes),
      offsets,
      lengths,
      Buffer.concat(hashes),
    ];
    return { query: { name: 'tenure_append', text: this.#text, values, timeoutMs: 0 }, end };
  }

  /**
   * An error that leaves the session open has ended the statement's transaction; after one that ends it the outcome is
   * unknown.
   */
  async #refused(session: PostgresSession, error: unknown): Promise<never> {
    const answersStill = await session.query({ text: 'SELECT 1' }).then(
      () => true,
      () => false,
    );
    const reason = error instanceof Error ? error : new Error(String(error));
    // When the primary became read-only, for example, the primary must be looked up again.
    session.destroy(reason);
    if (answersStill) throw unavailable('the database refused an append', error);
    const message = `the connection broke while an append was out: ${describeFailure(error)}`;
    throw new EngineError('unknown', message, { cause: error, trouble: troubleOf(error) });
  }
}

/**
 * One statement is one transaction: the row with the end of the log moves only if it is at the expected position, and
 * entries are inserted only if it moved. A concurrent append waits for the row, and then finds another position in it.
 * The batch is one value, split here: an array of values would be sent as text.
 */
function appendStatement({ head, entries }: LogSchema): string {
  return `WITH moved AS (
      UPDATE ${head} SET index = $3, hash = $4 WHERE index = $1 AND hash = $2 RETURNING index
    ), written AS (
      INSERT INTO ${entries} (index, hash, bytes)
      SELECT $1 + at, substring($8::bytea FROM (16 * at - 15)::int FOR 16), substring($5::bytea FROM start FOR length)
      FROM moved, unnest($6::int[], $7::int[]) WITH ORDINALITY AS entry(start, length, at)
    )
    SELECT FROM moved`;
}
