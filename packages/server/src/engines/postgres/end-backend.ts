import { setTimeout as delay } from 'node:timers/promises';
import type { Backend, PostgresSession } from './postgres-session.ts';

/** A backend that was told to end looks for that at least each time it waits. */
const backendEndMs = 3_000;
const backendPollMs = 10;

/**
 * Ends a backend whose connection broke, and sees that it has ended. On another host than its own there is none to be
 * found, and none that could still write here. `exceptSyncRep`: one that waits for a standby is let go on until it
 * has come to its end, since a commit that is broken off there stands on this host alone, and is seen by all.
 */
export async function endBackend(
  session: PostgresSession,
  { pid, applicationName }: Backend,
  { exceptSyncRep = false } = {},
): Promise<void> {
  const ended = exceptSyncRep
    ? `wait_event IS DISTINCT FROM 'SyncRep' AND pg_terminate_backend(pid)`
    : 'pg_terminate_backend(pid)';
  const text = `SELECT ${ended} FROM pg_stat_activity WHERE pid = $1 AND application_name = $2`;
  const giveUpAt = performance.now() + backendEndMs;
  while ((await session.query({ text, values: [pid, applicationName] })).length > 0) {
    if (performance.now() > giveUpAt)
      throw new Error(`the backend ${pid} of a broken append does not end, or waits for a standby that is not there`);
    await delay(backendPollMs);
  }
}
