import { etcdserverpb } from '@tenure/protocol';
import { EtcdError } from 'tenure/etcd';
import type { EtcdClient } from './etcd-client.ts';
import { engineErrorOf } from './engine-error-of.ts';
import type { LogKeys } from './log-keys.ts';

/** These lose or invent data after a crash of a member, by etcd's own word. */
const unsafeVersion = /^3\.5\.[0-2]$/;

/** What the operator of this etcd should know at start. Rejects with EngineError. */
export async function etcdNotices(client: EtcdClient, keys: LogKeys, isDedicated: boolean): Promise<string[]> {
  const notices: string[] = [];
  try {
    const { version } = await client.read(etcdserverpb.Maintenance.method.status, {});
    if (unsafeVersion.test(version)) {
      notices.push(`etcd ${version} can lose acknowledged writes when a member crashes: use 3.5.4 or later`);
    }
    if (!isDedicated && (await nobodyCompacts(client, keys))) {
      notices.push(
        'this etcd was not compacted so far; if that never happens, it keeps every revision and stops all writes at ' +
          'its quota: start etcd with --auto-compaction-mode and --auto-compaction-retention, or, if it is for ' +
          'Tenure alone, start Tenure with --engine-dedicated true',
      );
    }
    return notices;
  } catch (error) {
    throw engineErrorOf('asking etcd for its version failed', error, 'unavailable');
  }
}

/**
 * How etcd is set to compact itself cannot be asked. But its first revision can be read until it is compacted for the
 * first time.
 */
async function nobodyCompacts(client: EtcdClient, keys: LogKeys): Promise<boolean> {
  try {
    await client.read(etcdserverpb.KV.method.range, { key: keys.head, revision: 1n, countOnly: true });
    return true;
  } catch (error) {
    if (error instanceof EtcdError && error.etcdCode === 'compacted') return false;
    throw error;
  }
}
