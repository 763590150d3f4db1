import { execFileSync } from 'node:child_process';
import { EtcdProcess, etcdProgram } from '@tenure/test-support';
import { authFlags } from './auth-flags.ts';
import { advertisedClientUrl, memberName, type RunningServer, type ServerOptions } from './server-options.ts';

/** The version of the etcd that tests start, such as '3.4.23'; undefined when there is none. */
export function etcdVersion(): string | undefined {
  try {
    const output = execFileSync(etcdProgram, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return /etcd Version: (\S+)/.exec(output)?.[1];
  } catch {
    return undefined;
  }
}

function optionFlags(options: ServerOptions): string[] {
  const flags: string[] = [];
  const add = (flag: string, value: number | string | undefined, unit = ''): void => {
    if (value !== undefined) flags.push(`--${flag}=${value}${unit}`);
  };
  add('quota-backend-bytes', options.quotaBackendBytes);
  add('max-request-bytes', options.maxRequestBytes);
  add('max-txn-ops', options.maxTxnOps);
  add('experimental-watch-progress-notify-interval', options.progressNotifyIntervalMs, 'ms');
  add('cors', options.cors?.join(','));
  add('host-whitelist', options.hostWhitelist?.join(','));
  return [...flags, ...authFlags(options)];
}

/**
 * A one-member etcd on system-chosen ports, with the minimum TTL of Tenure. Its JSON gateway calls the port that it was
 * told to listen at, and so needs one that is not 0.
 */
export async function startEtcd(options: ServerOptions = {}, clientPort = 0): Promise<RunningServer> {
  const etcd = await EtcdProcess.start(
    `--name=${memberName}`,
    `--initial-cluster=${memberName}=http://127.0.0.1:0`,
    `--advertise-client-urls=${advertisedClientUrl}`,
    ...(clientPort === 0 ? [] : [`--listen-client-urls=http://127.0.0.1:${clientPort}`]),
    ...optionFlags(options),
  );
  const stop = (): Promise<void> => etcd.dispose();
  return { kind: 'etcd', address: etcd.endpoint, name: memberName, advertisedClientUrl, pid: etcd.pid, stop };
}
