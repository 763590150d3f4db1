import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServerProcess } from './server-process.ts';
import { advertisedClientUrl, memberName, type RunningServer, type ServerOptions } from './server-options.ts';

const startTimeoutMs = 30_000;

/** The version of the installed etcd, such as '3.4.23'; undefined when there is none. */
export function etcdVersion(): string | undefined {
  try {
    const output = execFileSync('etcd', ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return /etcd Version: (\S+)/.exec(output)?.[1];
  } catch {
    return undefined;
  }
}

function optionFlags(options: ServerOptions): string[] {
  const flags: string[] = [];
  const add = (flag: string, value: number | undefined, unit = ''): void => {
    if (value !== undefined) flags.push(`--${flag}=${value}${unit}`);
  };
  add('quota-backend-bytes', options.quotaBackendBytes);
  add('max-request-bytes', options.maxRequestBytes);
  add('max-txn-ops', options.maxTxnOps);
  add('experimental-watch-progress-notify-interval', options.progressNotifyIntervalMs, 'ms');
  return flags;
}

/**
 * A one-member etcd on ports of the system's choice. Its election timeout is half the default, which brings etcd's
 * shortest TTL (one and a half election timeouts, rounded up to a second) down to the second that Tenure has for TTLs
 * in seconds: the timing of cases is then the same for both.
 */
export async function startEtcd(options: ServerOptions = {}): Promise<RunningServer> {
  const dataDir = await mkdtemp(join(tmpdir(), 'conformance-etcd-'));
  const anyPort = 'http://127.0.0.1:0';
  const child = new ServerProcess('etcd', [
    `--name=${memberName}`,
    `--data-dir=${dataDir}`,
    `--listen-client-urls=${anyPort}`,
    `--advertise-client-urls=${advertisedClientUrl}`,
    `--listen-peer-urls=${anyPort}`,
    `--initial-advertise-peer-urls=${anyPort}`,
    `--initial-cluster=${memberName}=${anyPort}`,
    '--heartbeat-interval=50',
    '--election-timeout=500',
    '--logger=zap',
    '--log-level=info',
    '--log-outputs=stderr',
    ...optionFlags(options),
  ]);
  const stop = async (): Promise<void> => {
    await child.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  try {
    const ready = await child.waitForOutput(
      /"msg":"serving client traffic[^"]*",.*?"address":"([^"]+)"/,
      startTimeoutMs,
    );
    return { kind: 'etcd', address: ready[1] ?? '', name: memberName, advertisedClientUrl, pid: child.pid, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
