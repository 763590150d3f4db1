import { createLeaseManager, type LeaseManager, type WaitMode } from 'tenure';
import { type EtcdClient, etcdBackend } from 'tenure/etcd';
import { CliError } from './cli-error.ts';
import { parseDurationMs } from './duration.ts';

export const ttlDefault = '30s';

/** Runs `work` with a lease manager on the servers of `client`, and disposes of the manager afterwards. */
export async function withLeases<T>(
  client: EtcdClient,
  options: { readonly ttlMs?: number },
  work: (leases: LeaseManager) => Promise<T>,
): Promise<T> {
  await using leases = createLeaseManager({ backend: etcdBackend({ client }), ...options });
  return await work(leases);
}

/** Parses the value of `--ttl`. Throws a CliError `usage`. */
export function parseTtl(text: string): number {
  const ttlMs = parseDurationMs('--ttl', text);
  if (ttlMs === 0) throw new CliError('usage', '--ttl must be greater than zero');
  return ttlMs;
}

/** Parses the value of `--wait`. Throws a CliError `usage`. */
export function parseWait(text: string): WaitMode {
  return text === 'none' || text === 'forever' ? text : parseDurationMs('--wait', text);
}
