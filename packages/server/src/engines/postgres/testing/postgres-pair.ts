import { PostgresCluster } from './postgres-cluster.ts';

export interface PostgresPair {
  readonly primary: PostgresCluster;
  readonly standby: PostgresCluster;
  /** Of both; the standby comes first, so that it has to be passed over. */
  readonly url: string;
}

/** A primary and a standby that follows it, which nothing waits for yet. */
export async function createPair(): Promise<PostgresPair> {
  const primary = await PostgresCluster.create();
  try {
    const standby = await primary.createStandby();
    const hosts = `127.0.0.1:${standby.port},127.0.0.1:${primary.port}`;
    return { primary, standby, url: `postgres://postgres@${hosts}/postgres?target_session_attrs=read-write` };
  } catch (error) {
    await primary.dispose();
    throw error;
  }
}

/** Makes a pair of which the primary acknowledges nothing that the standby does not have. */
export async function makeSynchronous(primary: PostgresCluster): Promise<void> {
  await primary.query(`ALTER SYSTEM SET synchronous_standby_names = '*'`);
  await primary.query('SELECT pg_reload_conf()');
  while ((await primary.query(`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`)).length === 0);
}
