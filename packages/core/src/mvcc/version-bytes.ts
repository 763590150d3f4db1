import type { KeyValue } from './kv-types.ts';

/** Memory of one version besides its key and value: record, string headers, and slots in index and history. */
const versionOverheadBytes = 192;

/** An estimate of the memory of one version, for the quota. The key counts for each version, as in etcd's files. */
export function versionBytes(version: KeyValue): number {
  return version.key.length + version.value.length + versionOverheadBytes;
}
