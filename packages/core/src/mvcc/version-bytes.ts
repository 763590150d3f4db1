import type { KeyValue } from './kv-types.ts';

/**
 * What one version takes in memory beside its key and value: record, string headers, and its places in index and
 * history.
 */
const versionOverheadBytes = 192;

/**
 * An estimate of the memory of one version, for the quota. The key is counted each time, as etcd's files hold it each
 * time.
 */
export function versionBytes(version: KeyValue): number {
  return version.key.length + version.value.length + versionOverheadBytes;
}
