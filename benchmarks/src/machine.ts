import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { postgresVersion } from '@tenure/test-support';
import { etcdPeer } from './servers/etcd-peer.ts';

/** The facts about the machine that are needed to judge a number. */
export interface Machine {
  readonly date: string;
  readonly processor: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
  readonly etcd: string;
  /** Where that etcd came from. */
  readonly etcdOrigin?: string;
  readonly h2load: string;
  /** Where a cluster was measured. */
  readonly postgres?: string;
  /** Other processes that wanted a processor in the minute before the run: their work distorts the numbers. */
  readonly loadBefore?: number;
}

export function describeMachine(withPostgres: boolean): Machine {
  return {
    date: new Date().toISOString().slice(0, 10),
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGib: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    node: process.version,
    etcd: firstLine(etcdPeer().program, /Version: (\S+)/),
    etcdOrigin: etcdPeer().origin,
    h2load: firstLine('h2load', /nghttp2\/(\S+)/),
    loadBefore: Number((loadavg()[0] ?? 0).toFixed(1)),
    ...(withPostgres ? { postgres: postgresVersion() } : {}),
  };
}

function firstLine(program: string, pattern: RegExp): string {
  try {
    const output = execFileSync(program, ['--version'], { encoding: 'utf8' });
    return pattern.exec(output)?.[1] ?? 'unknown';
  } catch {
    throw new Error(
      `${program} is not installed: the benchmarks compare with it (Debian: etcd-server, nghttp2-client)`,
    );
  }
}
