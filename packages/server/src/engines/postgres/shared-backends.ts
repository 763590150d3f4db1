import { EngineError } from '../engine-error.ts';
import type { PostgresSession } from './postgres-session.ts';

/** Sessions opened in addition to the first, each in a transaction, so that every idle connection of a pool is seen. */
const maxOthers = 4;

/** How long another session may wait for a connection until the pool counts as exhausted. */
const poolWaitMs = 2_000;

const askBackend = `SELECT pid, backend_start::text AS begun FROM pg_stat_activity WHERE pid = pg_backend_pid()`;

/**
 * Refuses a pooler that assigns a database connection per transaction. The log relies on sessions: prepared statements,
 * settings, advisory locks, notifications, and the end of a backend as the end of its appends. The database does not
 * report such a pooler, so it is detected by its effect: another session in a transaction has this session's backend,
 * or this session has another backend than before. Whether a pooler reuses its most or its least recently used
 * connection, one of the two happens.
 *
 * A pool in session mode may have fewer connections. Then another session waits while this one, idle, keeps its
 * backend: a transaction pooler would have given the backend to the waiting session.
 *
 * `session` must not have changed any setting yet: the next user of its connection would inherit it.
 */
export async function refuseSharedBackends(
  session: PostgresSession,
  openOther: (signal: AbortSignal) => Promise<PostgresSession>,
): Promise<void> {
  const others: PostgresSession[] = [];
  const probing = new AbortController();
  try {
    while (others.length < maxOthers) {
      const mine = await backendOf(session);
      const opening = openOther(probing.signal);
      if (await waits(opening)) {
        if ((await backendOf(session)) !== mine) throw sharedBackends();
        if (await waits(opening)) return;
      }
      const other = await opening.catch(() => undefined);
      if (other === undefined) {
        // A pooler that accepts no more sessions may still show that it reassigned this session's connection.
        if ((await backendOf(session)) !== mine) throw sharedBackends();
        return;
      }
      others.push(other);
      await begin(other);
      if ((await backendOf(other)) === mine || (await backendOf(session)) !== mine) throw sharedBackends();
    }
  } finally {
    const seen = new Error('the pooler has been seen at work');
    probing.abort(seen);
    // A connection that is closed in a transaction is not reassigned.
    for (const other of others) other.destroy(seen);
  }
}

/** Whether it is still being opened after a while. Its later failures do not matter. */
async function waits(opening: Promise<PostgresSession>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, poolWaitMs, true)));
  const settled = opening.then(
    () => false,
    () => false,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function begin(session: PostgresSession): Promise<void> {
  try {
    await session.query({ text: 'BEGIN' });
  } catch (error) {
    // PgBouncer's answer when it pools by statement.
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
