import type { PostgresSession } from './postgres-session.ts';

/** Settings of the database that endanger the log; one sentence each for the operator. */
export async function noticeSettings(session: PostgresSession, onNotice: (notice: string) => void): Promise<void> {
  const text = `SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_standby_names') AS standbys, current_setting('synchronous_commit') AS commit,
    (SELECT setting FROM pg_settings WHERE name = 'synchronous_commit' AND reset_val = 'off') AS raised`;
  const [row] = await session.query({ text });
  if (row === undefined) return;
  const { fsync, full_page_writes: fullPageWrites, standbys, commit, raised } = row;
  if (fsync === 'off') onNotice('the database has fsync = off: it may lose or damage the log when its machine stops');
  if (fullPageWrites === 'off') {
    onNotice('the database has full_page_writes = off: a crash of its machine may damage the log');
  }
  if (raised !== null) {
    onNotice('the database has synchronous_commit = off; sessions of this server use synchronous_commit = on');
  }
  const loss = 'what was acknowledged last is lost when its machine is lost';
  if (standbys === '') {
    onNotice(`the database replicates to no standby synchronously (synchronous_standby_names is empty): ${loss}`);
  } else if (commit === 'local') {
    onNotice(`the database has synchronous_commit = local, which waits for no standby: ${loss}`);
  }
}
