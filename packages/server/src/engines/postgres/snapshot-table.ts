import { createHash, randomBytes } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { EngineError } from '../engine-error.ts';
import type { Position, StoredSnapshot } from '../log-engine.ts';
import type { LogSchema } from './log-schema.ts';
import { checkHolds, hashBytes, positionOf, readTail } from './read-tail.ts';
import type { PostgresSession, SessionQuery } from './postgres-session.ts';

const maxRowBytes = 1024 * 1024;
/** A reader holds each chunk in memory as a whole. */
const maxChunkBytes = 256 * 1024 * 1024;
/** One statement deletes at most this many rows of chunks. */
const deletedRows = 64;
/** One statement deletes at most this many entries. */
const trimmedEntries = 1_024;
/** The newest snapshot and the one before it, which may still be in use by a reader. */
const keptSnapshots = 2;
/** For the statements that move or delete many bytes. */
const bulkTimeoutMs = 60_000;

interface SnapshotRow {
  readonly id: string;
  readonly position: Position;
  readonly chunkRows: number;
  readonly digest: string;
}

/** Runs a loader's query on the current session, and again on the next one if that is lost. */
type Ask = (query: SessionQuery) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** The snapshots of a log, and trimming. */
export class SnapshotTable {
  readonly #schema: LogSchema;

  constructor(schema: LogSchema) {
    this.#schema = schema;
  }

  /**
   * Writes a snapshot on a session of its own, which ends with it: while the session lasts, its lock marks the rows as
   * in use. The snapshot is invisible until the last statement, which also makes the earlier rows durable. Returns its
   * size; 0 when a newer one exists. `check` throws once the engine has ended.
   */
  async save(session: PostgresSession, position: Position, chunks: AsyncIterable<Uint8Array>, check: () => void) {
    const { snapshots } = this.#schema;
    const newest = await this.#newest((query) => session.query(query));
    if (newest !== undefined && position.index < newest.position.index) return 0;
    await checkHolds(session, this.#schema, position);
    const { id, rows, bytes, digest } = await this.#write(session, position, chunks, check);
    const complete = `UPDATE ${snapshots} SET complete = true, chunk_rows = $2, digest = $3,
        ordinal = (SELECT coalesce(max(ordinal), 0) + 1 FROM ${snapshots}) WHERE id = $1`;
    await session.query({ text: complete, values: [id, rows, digest], timeoutMs: bulkTimeoutMs });
    await session.query({ text: 'SELECT pg_advisory_unlock($1)', values: [id] });
    return bytes;
  }

  /** Like `save`, for a log that begins with it. One statement moves the head and makes the snapshot visible. */
  async seed(session: PostgresSession, position: Position, chunks: AsyncIterable<Uint8Array>, check: () => void) {
    const { head, snapshots } = this.#schema;
    await this.#checkEmpty(session);
    const { id, rows, bytes, digest } = await this.#write(session, position, chunks, check);
    const text = `WITH begun AS (
        UPDATE ${head} SET index = $4, hash = $5, trimmed_index = $4, trimmed_hash = $5
        WHERE index = 0 AND NOT EXISTS (SELECT FROM ${snapshots} WHERE complete) RETURNING 1
      )
      UPDATE ${snapshots} SET complete = true, chunk_rows = $2, digest = $3, ordinal = 1
      FROM begun WHERE id = $1 RETURNING 1 AS done`;
    const values = [id, rows, digest, position.index, hashBytes(position)];
    const done = await session.query({ text, values, timeoutMs: bulkTimeoutMs });
    await session.query({ text: 'SELECT pg_advisory_unlock($1)', values: [id] });
    if (done.length > 0) return bytes;
    await this.#checkEmpty(session);
    throw new EngineError('unavailable', 'the snapshot was removed while it was written: try again');
  }

  async #checkEmpty(session: PostgresSession): Promise<void> {
    const tail = await readTail(session, this.#schema);
    const newest = await this.#newest((query) => session.query(query));
    if (tail.index === 0 && newest === undefined) return;
    throw new EngineError('conflict', `the log is not empty: it ends at entry ${tail.index}`, { tail });
  }

  /** Writes a snapshot except for the statement that makes it visible. */
  async #write(session: PostgresSession, position: Position, chunks: AsyncIterable<Uint8Array>, check: () => void) {
    const { snapshots } = this.#schema;
    // Rows lost in a crash are rows of an invisible snapshot.
    await session.query({ text: `SELECT set_config('synchronous_commit', 'off', false)` });
    const id = (randomBytes(8).readBigInt64BE() & 0x7fff_ffff_ffff_ffffn).toString();
    await session.query({ text: 'SELECT pg_advisory_lock($1)', values: [id] });
    const insert = `INSERT INTO ${snapshots} (id, index, hash) VALUES ($1, $2, $3)`;
    await session.query({ text: insert, values: [id, position.index, hashBytes(position)] });
    const written = await this.#writeChunks(session, id, chunks, check);
    await session.query({ text: `SELECT set_config('synchronous_commit', 'on', false)` });
    return { id, ...written };
  }

  async #writeChunks(session: PostgresSession, id: string, chunks: AsyncIterable<Uint8Array>, check: () => void) {
    const text = `INSERT INTO ${this.#schema.snapshotChunks} VALUES ($1, $2, $3, $4)`;
    const digest = createHash('sha256');
    let rows = 0;
    let bytes = 0;
    for await (const chunk of chunks) {
      check();
      if (chunk.length > maxChunkBytes) throw new Error(`a snapshot chunk is larger than ${maxChunkBytes} bytes`);
      digestChunk(digest, chunk);
      bytes += chunk.length;
      let at = 0;
      do {
        const piece = chunk.subarray(at, at + maxRowBytes);
        at += maxRowBytes;
        const values = [id, rows++, at < chunk.length, piece];
        await session.query({ name: 'tenure_chunk_row', text, values, timeoutMs: bulkTimeoutMs });
        check();
      } while (at < chunk.length);
    }
    return { rows, bytes, digest: digest.digest() };
  }

  /** Removes unneeded snapshots: those abandoned while they were written, and those that are too old. */
  async sweep(session: PostgresSession): Promise<void> {
    const { snapshots } = this.#schema;
    const retire = `UPDATE ${snapshots} SET complete = false WHERE complete AND id NOT IN (
      SELECT id FROM ${snapshots} WHERE complete ORDER BY index DESC, ordinal DESC LIMIT ${keptSnapshots})`;
    await session.query({ text: retire });
    for (const { id } of await session.query({ text: `SELECT id FROM ${snapshots} WHERE NOT complete` })) {
      const [lock] = await session.query({ text: 'SELECT pg_try_advisory_lock($1) AS free', values: [id] });
      if (lock?.['free'] !== true) continue;
      // Its writer held the lock until it was complete or abandoned: now the two can be distinguished.
      const waste = `SELECT FROM ${snapshots} WHERE id = $1 AND NOT complete`;
      if ((await session.query({ text: waste, values: [id] })).length > 0) await this.#remove(session, String(id));
      await session.query({ text: 'SELECT pg_advisory_unlock($1)', values: [id] });
    }
  }

  async #remove(session: PostgresSession, id: string): Promise<void> {
    const { snapshots, snapshotChunks } = this.#schema;
    const text = `DELETE FROM ${snapshotChunks} WHERE snapshot_id = $1 AND ordinal IN (
      SELECT ordinal FROM ${snapshotChunks} WHERE snapshot_id = $1 ORDER BY ordinal LIMIT ${deletedRows})
      RETURNING 1 AS gone`;
    const slice = { text, values: [id], timeoutMs: bulkTimeoutMs };
    while ((await session.query(slice)).length > 0);
    await session.query({ text: `DELETE FROM ${snapshots} WHERE id = $1`, values: [id] });
  }

  async load(ask: Ask): Promise<StoredSnapshot | undefined> {
    const newest = await this.#newest(ask);
    return newest && { position: newest.position, chunks: this.#read(newest, ask) };
  }

  async #newest(ask: Ask): Promise<SnapshotRow | undefined> {
    const text = `SELECT id, index, hash, chunk_rows, digest FROM ${this.#schema.snapshots} WHERE complete
      ORDER BY index DESC, ordinal DESC LIMIT 1`;
    const [row] = await ask({ text });
    if (row === undefined) return undefined;
    const position = positionOf(row['index'], row['hash']);
    const digest = (row['digest'] as Buffer).toString('hex');
    return { id: String(row['id']), position, chunkRows: Number(row['chunk_rows']), digest };
  }

  async *#read({ id, position, chunkRows, digest }: SnapshotRow, ask: Ask): AsyncGenerator<Uint8Array> {
    const { snapshots, snapshotChunks } = this.#schema;
    const text = `SELECT is_continued, bytes FROM ${snapshotChunks} WHERE snapshot_id = $1 AND ordinal = $2`;
    const read = createHash('sha256');
    let pieces: Buffer[] = [];
    for (let ordinal = 0; ordinal < chunkRows; ordinal++) {
      const [row] = await ask({ name: 'tenure_read_chunk', text, values: [id, ordinal] });
      if (row === undefined) {
        const there = await ask({ text: `SELECT FROM ${snapshots} WHERE id = $1 AND complete`, values: [id] });
        if (there.length > 0) throw this.#damaged(position, `row ${ordinal} of ${snapshotChunks} is missing`);
        const what = `the snapshot at entry ${position.index} was replaced while it was read`;
        throw new EngineError('unavailable', `${what}; load the newest one`);
      }
      pieces.push(row['bytes'] as Buffer);
      if (row['is_continued'] === true) continue;
      const chunk = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
      pieces = [];
      digestChunk(read, chunk);
      yield chunk;
    }
    if (read.digest('hex') !== digest) throw this.#damaged(position, 'its bytes do not have its digest');
  }

  /**
   * Moves the beginning of the log after `index`, or after the newest snapshot if that is lower, in one statement. Then
   * it deletes the entries before it, oldest first, in slices, including those left by an interrupted trim.
   */
  async trim(session: PostgresSession, index: number, check: () => void): Promise<void> {
    const { head, entries, snapshots } = this.#schema;
    const move = `WITH clamped AS (SELECT least($1, max(index)) AS upto FROM ${snapshots} WHERE complete
        HAVING count(*) > 0)
      UPDATE ${head} SET trimmed_index = clamped.upto, trimmed_hash = entries.hash
      FROM clamped JOIN ${entries} AS entries ON entries.index = clamped.upto
      WHERE ${head}.trimmed_index < clamped.upto AND clamped.upto <= ${head}.index`;
    await session.query({ text: move, values: [index], timeoutMs: bulkTimeoutMs });
    // Rows that a crash restores are below the beginning of the log, and are deleted by the next trim.
    await session.query({ text: `SELECT set_config('synchronous_commit', 'off', false)` });
    const slice = `DELETE FROM ${entries} WHERE index IN (
        SELECT index FROM ${entries} WHERE index >= $1 AND
          index <= (SELECT trimmed_index FROM ${head} ORDER BY ${head}.index DESC LIMIT 1)
        ORDER BY index LIMIT ${trimmedEntries}) RETURNING index`;
    let from = 0;
    for (;;) {
      check();
      const gone = await session.query({ text: slice, values: [from], timeoutMs: bulkTimeoutMs });
      if (gone.length === 0) return;
      // By beginning where the last slice ended, a statement does not scan dead rows.
      from = gone.reduce((last, row) => Math.max(last, Number(row['index'])), from) + 1;
    }
  }

  #damaged(position: Position, what: string): EngineError {
    const help = `restore the schema ${this.#schema.name} from a backup`;
    return new EngineError('damaged', `the snapshot at entry ${position.index} is damaged: ${what}; ${help}`);
  }
}

/** The length precedes the bytes, so that the same bytes split differently have another digest. */
function digestChunk(digest: Hash, chunk: Uint8Array): void {
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(chunk.length));
  digest.update(length).update(chunk);
}
