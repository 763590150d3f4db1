import { setTimeout as delay } from 'node:timers/promises';
import { PostgresCluster } from './postgres-cluster.ts';

const waitMs = 60_000;
const retryMs = 20;
const walSenders = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'walsender'`;

/** A PostgreSQL primary and an asynchronous standby that follows it. */
export class PostgresPair {
  readonly primary: PostgresCluster;
  readonly standby: PostgresCluster;

  private constructor(primary: PostgresCluster, standby: PostgresCluster) {
    this.primary = primary;
    this.standby = standby;
  }

  static async create(): Promise<PostgresPair> {
    const primary = await PostgresCluster.create();
    try {
      return new PostgresPair(primary, await primary.createStandby());
    } catch (error) {
      await primary.dispose();
      throw error;
    }
  }

  /** Names both, the standby first, so that it has to be skipped while it is a standby. */
  get url(): string {
    const hosts = [this.standby, this.primary].map(({ port }) => `127.0.0.1:${port}`).join(',');
    return `postgres://postgres@${hosts}/postgres?target_session_attrs=read-write`;
  }

  /** From now on the primary acknowledges only commits that the standby has. */
  async makeSynchronous(): Promise<void> {
    await this.primary.query(`ALTER SYSTEM SET synchronous_standby_names = '*'`);
    await this.primary.query('SELECT pg_reload_conf()');
    await until('the standby is synchronous', async () => {
      const rows = await this.primary.query(`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`);
      return rows.length > 0;
    });
  }

  /** Resolves when the standby has everything that the primary had at the call. */
  async caughtUp(): Promise<void> {
    const end = await lastIndex(this.primary);
    await until('the standby has caught up', async () => (await lastIndex(this.standby)) >= end);
  }

  /** Cuts the standby off permanently: it receives no later commit of the primary. */
  async separate(): Promise<void> {
    await this.primary.query('ALTER SYSTEM SET max_wal_senders = 0');
    await this.standby.query(`ALTER SYSTEM SET primary_conninfo = ''`);
    await this.standby.query('SELECT pg_reload_conf()');
    await until('the standby is cut off', async () => {
      await this.primary.query(walSenders);
      return (await this.primary.query('SELECT FROM pg_stat_replication')).length === 0;
    });
  }

  async dispose(): Promise<void> {
    await Promise.all([this.primary.dispose(), this.standby.dispose()]);
  }
}

/** The end of the log, by its entries. */
export async function lastIndex(database: PostgresCluster): Promise<number> {
  const [row] = await database.query('SELECT max(index) AS index FROM tenure.entries');
  return Number(row?.['index']);
}

/** PostgreSQL does not report these changes, so the test polls. */
async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + waitMs;
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`timed out waiting until ${what}`);
    await delay(retryMs);
  }
}
