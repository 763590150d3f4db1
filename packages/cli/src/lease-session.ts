import { createLeaseManager, type LeaseManager, type WaitMode } from 'tenure';
import { type EtcdClient, etcdBackend } from 'tenure/etcd';
import { CliError } from './cli-error.ts';
import { parseDurationMs } from './duration.ts';

export const ttlDefault = '30s';

/** Runs `work` with the library's leases in the servers of `client`, and releases what is left of them. */
export async function withLeases<T>(
  client: EtcdClient,
  options: { readonly ttlMs?: number },
  work: (leases: LeaseManager) => Promise<T>,
): Promise<T> {
  await using leases = createLeaseManager({ backend: etcdBackend({ client }), ...options });
  return await work(leases);
}

/** What stands behind `--ttl`. Throws CliError `usage`. */
export function parseTtl(text: string): number {
  const ttlMs = parseDurationMs('--ttl', text);
  if (ttlMs === 0) throw new CliError('usage', '--ttl must be more than nothing');
  return ttlMs;
}

/** What stands behind `--wait`. Throws CliError `usage`. */
export function parseWait(text: string): WaitMode {
  return text === 'none' || text === 'forever' ? text : parseDurationMs('--wait', text);
}
