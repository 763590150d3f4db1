import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServeProcess } from '@tenure/test-support';
import { authFlags } from './auth-flags.ts';
import { advertisedClientUrl, memberName, type RunningServer, type ServerOptions } from './server-options.ts';

/** The flags of `tenure serve` for the options of a case. */
export function optionFlags(options: ServerOptions): string[] {
  // As in etcd by default: the data of a case stays, and so does an alarm.
  const flags: string[] = ['--auto-compaction-retention=0'];
  const add = (flag: string, value: number | string | undefined, unit = ''): void => {
    if (value !== undefined) flags.push(`--${flag}=${value}${unit}`);
  };
  add('quota-backend-bytes', options.quotaBackendBytes);
  add('max-request-bytes', options.maxRequestBytes);
  add('max-txn-ops', options.maxTxnOps);
  add('watch-progress-notify-interval', options.progressNotifyIntervalMs, 'ms');
  add('cors', options.cors?.join(','));
  add('host-whitelist', options.hostWhitelist?.join(','));
  return [...flags, ...authFlags(options)];
}

/** `tenure serve` on a system-chosen port. */
export async function startTenure(
  options: ServerOptions = {},
  engine: 'memory' | 'file' = 'memory',
): Promise<RunningServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'conformance-tenure-'));
  const child = new ServeProcess([
    'serve',
    `--name=${memberName}`,
    `--engine=${engine}`,
    `--data-dir=${dataDir}`,
    '--listen-client-urls=http://127.0.0.1:0',
    `--advertise-client-urls=${advertisedClientUrl}`,
    ...optionFlags(options),
  ]);
  const stop = async (): Promise<void> => {
    await child.end();
    await rm(dataDir, { recursive: true, force: true });
  };
  try {
    const [url = ''] = await child.ready();
    return { kind: 'tenure', address: new URL(url).host, name: memberName, advertisedClientUrl, pid: child.pid, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
