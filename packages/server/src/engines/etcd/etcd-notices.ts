import { etcdserverpb } from '@tenure/protocol';
import { EtcdError } from 'tenure/etcd';
import type { EtcdLogClient } from './etcd-log-client.ts';
import { engineErrorOf } from './engine-error-of.ts';
import type { LogKeys } from './log-keys.ts';

/** According to etcd, these versions lose or invent data after a crash of a member. */
const unsafeVersion = /^3\.5\.[0-2]$/;

/** Notices for the operator about this etcd at start. Rejects with EngineError. */
export async function etcdNotices(client: EtcdLogClient, keys: LogKeys, isDedicated: boolean): Promise<string[]> {
  const notices: string[] = [];
  try {
    const { version } = await client.read(etcdserverpb.Maintenance.method.status, {});
    if (unsafeVersion.test(version)) {
      notices.push(`etcd ${version} can lose acknowledged writes when a member crashes: use 3.5.4 or later`);
    }
    if (!isDedicated && (await nobodyCompacts(client, keys))) {
      notices.push(
        'this etcd was never compacted; without compaction it keeps every revision and stops all writes at ' +
          'its quota: start etcd with --auto-compaction-mode and --auto-compaction-retention, or, if it is for ' +
          'Tenure alone, start Tenure with --engine-dedicated true',
      );
    }
    return notices;
  } catch (error) {
    throw engineErrorOf('asking etcd for its version failed', error, 'unavailable');
  }
}

/** etcd does not report its auto-compaction settings, but its first revision can be read until the first compaction. */
async function nobodyCompacts(client: EtcdLogClient, keys: LogKeys): Promise<boolean> {
  try {
    await client.read(etcdserverpb.KV.method.range, { key: keys.head, revision: 1n, countOnly: true });
    return true;
  } catch (error) {
    if (error instanceof EtcdError && error.etcdCode === 'compacted') return false;
    throw error;
  }
}
