import type { PostgresAddress, PostgresHost } from './postgres-address.ts';
import { describeFailure } from './postgres-failure.ts';
import { PostgresSession } from './postgres-session.ts';
import type { PostgresTiming } from './postgres-timing.ts';
import { refuseSharedBackends } from './shared-backends.ts';

/**
 * The settings that the log needs in its sessions, regardless of the defaults of the role, database or server. No
 * timeout may end a statement: a commit that is cancelled while it waits for its standby exists on the primary alone,
 * and is visible to all. The database closes a silent client, so that no lock is kept by a machine that is gone.
 */
const settings = {
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
  transaction_timeout: '0',
  client_connection_check_interval: '0',
  default_transaction_isolation: 'read committed',
  client_min_messages: 'warning',
  bytea_output: 'hex',
  standard_conforming_strings: 'on',
  // The updated row leaves dead versions behind while a backup holds them; its index finds the current one.
  enable_seqscan: 'off',
  // A table without an index is scanned all the same, but then its estimated cost is so high that JIT compilation would
  // start: half a second of work in each session that reads the version.
  jit: 'off',
  tcp_keepalives_idle: '10',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '15000',
};

/**
 * Settings that this version of the database does not know are skipped. A commit may wait for as little as the operator
 * wants, but must wait for something.
 */
const applySettings = `SELECT set_config(wanted.name, wanted.value, false)
  FROM unnest($1::text[], $2::text[]) AS wanted(name, value) JOIN pg_settings USING (name)
  UNION ALL
  SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`;

/** A host without an answer for this long is still awaited, but the next one is tried in parallel. */
const hostStaggerMs = 250;

/**
 * A session on a writable host, tried in the order of the URL; a silent host does not delay the others. When there is
 * none, rejects with an error that names the fault of each host, and with the causes.
 */
export async function openPrimarySession(
  address: PostgresAddress,
  purpose: string,
  signal: AbortSignal,
): Promise<PostgresSession> {
  const found = new AbortController();
  const giveUp = (): void => found.abort(signal.reason);
  signal.addEventListener('abort', giveUp);
  const tries: Promise<PostgresSession>[] = [];
  try {
    for (const host of address.hosts) {
      tries.push(openOn(host, address.timing, purpose, found.signal));
      if (tries.length < address.hosts.length && (await isOpenSoon(tries))) break;
    }
    const session = await Promise.any(tries);
    for (const other of tries)
      void other.then(
        (late) => late === session || late.destroy(notNeeded),
        () => undefined,
      );
    return session;
  } catch (error) {
    const causes: unknown[] = error instanceof AggregateError ? error.errors : [error];
    const words = causes.map((cause, at) => `${address.hosts[at]?.name}: ${describeFailure(cause)}`);
    throw new Error(words.join('; '), { cause: error });
  } finally {
    signal.removeEventListener('abort', giveUp);
    found.abort(notNeeded);
  }
}

const notNeeded = new Error('another host is the primary');

/** Whether one of the attempts has opened a session; waits while the last one may still do so soon. */
async function isOpenSoon(tries: readonly Promise<PostgresSession>[]): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, hostStaggerMs, false)));
  const lastFailed = tries.at(-1)?.then(
    () => true,
    () => false,
  );
  const anyOpen = Promise.any(tries).then(
    () => true,
    () => false,
  );
  try {
    return await Promise.race([late, lastFailed ?? late, anyOpen]);
  } finally {
    clearTimeout(timer);
  }
}

async function openOn(
  host: PostgresHost,
  timing: PostgresTiming,
  purpose: string,
  signal: AbortSignal,
): Promise<PostgresSession> {
  const session = await PostgresSession.connectToPrimary(host, timing, purpose, signal);
  try {
    if (purpose === 'start' && session.isPooled) {
      await refuseSharedBackends(session, (probing) => {
        return PostgresSession.connectToPrimary(host, timing, 'probe', AbortSignal.any([signal, probing]));
      });
    }
    await session.query({ text: applySettings, values: [Object.keys(settings), Object.values(settings)] });
    return session;
  } catch (error) {
    session.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
}
