import { EngineError } from '../engine-error.ts';
import type { PostgresSession } from './postgres-session.ts';

/** Sessions opened beside the first, each in a transaction, so that every idle connection of a pool is seen. */
const maxOthers = 4;

const askBackend = `SELECT pid, backend_start::text AS begun FROM pg_stat_activity WHERE pid = pg_backend_pid()`;

/**
 * Refuses a pooler that gives a connection of the database away between two transactions of a session. The log rests on
 * sessions: prepared statements, settings, advisory locks, notifications, and the end of a backend as the end of what
 * it appended. Nothing of the database says that there is such a pooler, so it is shown at work: another session in a
 * transaction has the backend that this one had, or this one has another backend than before. Whichever connection a
 * pooler takes next, the one that came back last or the one that has waited longest, one of the two happens.
 *
 * `session` must not have changed any setting yet: it would reach the next user of its connection.
 */
export async function refuseSharedBackends(
  session: PostgresSession,
  openOther: () => Promise<PostgresSession>,
): Promise<void> {
  const others: PostgresSession[] = [];
  try {
    while (others.length < maxOthers) {
      const mine = await backendOf(session);
      const other = await openOther();
      others.push(other);
      await begin(other);
      if ((await backendOf(other)) === mine || (await backendOf(session)) !== mine) throw sharedBackends();
    }
  } finally {
    // A connection that is closed in a transaction is not given to anybody else.
    for (const other of others) other.destroy(new Error('the pooler has been seen at work'));
  }
}

async function begin(session: PostgresSession): Promise<void> {
  try {
    await session.query({ text: 'BEGIN' });
  } catch (error) {
    // PgBouncer's answer where it pools by statement.
    if (error instanceof Error && /pooling mode/.test(error.message)) throw sharedBackends();
    throw error;
  }
}

async function backendOf(session: PostgresSession): Promise<string> {
  const [row] = await session.query({ text: askBackend });
  return `${String(row?.['pid'])} ${String(row?.['begun'])}`;
}

function sharedBackends(): EngineError {
  const what = 'a pooler gives one connection of the database to several sessions, as PgBouncer does by transaction';
  return new EngineError('unusable', `${what}: connect to the database directly, or set pool_mode = session in it`);
}
