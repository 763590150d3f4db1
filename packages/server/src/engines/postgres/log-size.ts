import type { LogSchema } from './log-schema.ts';
import type { PostgresSession } from './postgres-session.ts';

/**
 * The size of the log in the database: the last reported size, plus the writes of this server since then. A trimmed log
 * shrinks here only after a vacuum of the database.
 */
export class LogSize {
  readonly #schema: LogSchema;
  #measuredBytes = 0;
  #writtenBytes = 0;

  constructor(schema: LogSchema) {
    this.#schema = schema;
  }

  get bytes(): number {
    return this.#measuredBytes + this.#writtenBytes;
  }

  wrote(bytes: number): void {
    this.#writtenBytes += bytes;
  }

  async measure(session: PostgresSession): Promise<void> {
    const { head, entries, snapshots, snapshotChunks } = this.#schema;
    const text = `SELECT sum(pg_total_relation_size(name::regclass)) AS bytes FROM unnest($1::text[]) AS name`;
    const writtenBefore = this.#writtenBytes;
    const [row] = await session.query({ text, values: [[head, entries, snapshots, snapshotChunks]] });
    this.#measuredBytes = Number(row?.['bytes']);
    this.#writtenBytes -= writtenBefore;
  }
}
