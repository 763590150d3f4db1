import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import type { LogSchema } from './log-schema.ts';
import type { PostgresSession } from './postgres-session.ts';

/** A position as stored in the database: the hash as 16 bytes, the index as text. */
export function positionOf(index: unknown, hash: unknown): Position {
  if (!Buffer.isBuffer(hash)) throw new Error(`the database gave ${typeof hash} where a hash should be`);
  return { index: Number(index), hash: hash.toString('hex') };
}

export function hashBytes(position: Position): Buffer {
  return Buffer.from(position.hash, 'hex');
}

/** The end of the log, as visible to this session. */
export async function readTail(session: PostgresSession, schema: LogSchema): Promise<Position> {
  const text = `SELECT index, hash FROM ${schema.head} ORDER BY index DESC LIMIT 1`;
  const [row] = await session.query({ text, name: 'tenure_tail' });
  if (row === undefined) throw headMissing(schema);
  return positionOf(row['index'], row['hash']);
}

/**
 * Checks that the log holds `position`. Throws EngineError `trimmed` when it is below the trim, `diverged` when the log
 * is shorter or different there, `damaged` when an entry is missing in the middle.
 */
export async function checkHolds(session: PostgresSession, schema: LogSchema, position: Position): Promise<void> {
  const text = `SELECT head.*, (SELECT hash FROM ${schema.entries} WHERE index = $1) AS held
    FROM ${schema.head} AS head ORDER BY index DESC LIMIT 1`;
  const [row] = await session.query({ text, name: 'tenure_holds', values: [position.index] });
  if (row === undefined) throw headMissing(schema);
  const tail = positionOf(row['index'], row['hash']);
  const begin = positionOf(row['trimmed_index'], row['trimmed_hash']);
  if (position.index < begin.index) {
    const what = `entry ${position.index + 1} is gone: the log begins behind entry ${begin.index}`;
    throw new EngineError('trimmed', `${what}, load the snapshot`);
  }
  if (position.index > tail.index) {
    const what = `the log ends at entry ${tail.index}, before entry ${position.index} that was applied`;
    throw new EngineError('diverged', `${what}: the database has lost the end of it, ${divergedHelp}`);
  }
  if (position.index > begin.index && row['held'] === null) throw missing(schema, position.index, begin, tail);
  const held = position.index === begin.index ? begin : positionOf(position.index, row['held']);
  if (held.hash === position.hash) return;
  const what = `the log has another entry ${position.index} than the one that was applied`;
  throw new EngineError('diverged', `${what}: the database has replaced the end of it, ${divergedHelp}`);
}

const divergedHelp =
  'as after a failover to a standby that was not synchronous, or after the restore of a backup; or this is the ' +
  'database of another cluster';

function missing(schema: LogSchema, index: number, begin: Position, tail: Position): EngineError {
  const range = `the log goes from ${begin.index + 1} to ${tail.index}`;
  const what = `entry ${index} is missing in ${schema.entries}, and ${range}`;
  return new EngineError('damaged', `${what}; it was deleted: restore the schema from a backup`);
}

function headMissing(schema: LogSchema): EngineError {
  return new EngineError('damaged', `${schema.head} holds no row; restore the schema ${schema.name} from a backup`);
}
