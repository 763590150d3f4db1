import { setTimeout as delay } from 'node:timers/promises';
import type { Backend, PostgresSession } from './postgres-session.ts';

/** A terminated backend checks for that at least each time it waits. */
const backendEndMs = 3_000;
const backendPollMs = 10;

/**
 * Terminates the backend of a broken connection, and waits until it has ended. On another host there is no such
 * backend, and none that could still write here. `exceptSyncRep`: a backend that waits for a standby is not terminated,
 * and this rejects: a commit interrupted there exists on this host alone, and is visible to all.
 */
export async function endBackend(
  session: PostgresSession,
  { pid, applicationName }: Backend,
  { exceptSyncRep = false } = {},
): Promise<void> {
  const text = `SELECT waits, CASE WHEN NOT waits THEN pg_terminate_backend(pid) END
    FROM (SELECT pid, ($3 AND wait_event = 'SyncRep') IS TRUE AS waits FROM pg_stat_activity
      WHERE pid = $1 AND application_name = $2) AS backend`;
  const values = [pid, applicationName, exceptSyncRep];
  const giveUpAt = performance.now() + backendEndMs;
  for (;;) {
    const [backend] = await session.query({ text, values });
    if (backend === undefined) return;
    if (backend['waits'] === true) {
      throw new Error(`the backend ${pid} of an append waits for a standby that is not there`);
    }
    if (performance.now() > giveUpAt) throw new Error(`the backend ${pid} of a broken append does not end`);
    await delay(backendPollMs);
  }
}
