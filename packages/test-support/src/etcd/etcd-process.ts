import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChildProgram } from '../child-program.ts';
import { isInstalled } from '../installed-programs.ts';

const startTimeoutMs = 30_000;
/** The etcd that tests start: the installed one, or the one at the path in TENURE_TEST_ETCD, for another version. */
export const etcdProgram = process.env['TENURE_TEST_ETCD'] ?? 'etcd';
/** The log line of etcd when it accepts calls. */
const servingPattern = /"msg":"serving client traffic[^"]*",.*?"address":"[^"]*:(\d+)"/;
/** Version 2 of its API was etcdctl's default once. */
const env = { ...process.env, ETCDCTL_API: '3' };

/** Whether this machine has etcd and etcdctl. When all tests are required to run, their absence is a failure. */
export function hasEtcd(): boolean {
  const missing = [[etcdProgram, '--version'] as const, ['etcdctl', 'version'] as const].filter(
    ([program, argument]) => spawnSync(program, [argument], { stdio: 'ignore', env }).status !== 0,
  );
  return isInstalled(missing.length === 0, 'etcd-server etcd-client');
}

/**
 * A real etcd of one member, which can be killed and restarted with its data and on its port. Its election timeout is
 * half the default, which reduces etcd's minimum TTL (one and a half election timeouts, rounded up to a second) to one
 * second, which is Tenure's minimum TTL in seconds. Given flags come last and so take precedence.
 */
export class EtcdProcess {
  readonly #folder = mkdtempSync(join(tmpdir(), 'tenure-etcd-'));
  readonly #flags: readonly string[];
  readonly #scheme: 'http' | 'https';
  #program: ChildProgram | undefined;
  #port = 0;

  private constructor(flags: readonly string[]) {
    this.#flags = flags;
    this.#scheme = flags.some((flag) => flag.startsWith('--cert-file')) ? 'https' : 'http';
  }

  static async start(...flags: string[]): Promise<EtcdProcess> {
    const etcd = new EtcdProcess(flags);
    try {
      await etcd.start();
    } catch (error) {
      await etcd.dispose();
      throw error;
    }
    return etcd;
  }

  /** host:port for clients; the same after a restart. */
  get endpoint(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  get pid(): number {
    return this.#program?.pid ?? -1;
  }

  async start(): Promise<void> {
    const clients = `${this.#scheme}://127.0.0.1:${this.#port}`;
    const anyPort = 'http://127.0.0.1:0';
    const args = [
      '--name=one',
      `--data-dir=${this.#folder}`,
      `--listen-client-urls=${clients}`,
      `--advertise-client-urls=${clients}`,
      `--listen-peer-urls=${anyPort}`,
      `--initial-advertise-peer-urls=${anyPort}`,
      `--initial-cluster=one=${anyPort}`,
      '--heartbeat-interval=50',
      '--election-timeout=500',
      '--logger=zap',
      '--log-level=info',
      '--log-outputs=stderr',
      ...this.#flags,
    ];
    this.#program = new ChildProgram({ program: etcdProgram, args });
    this.#port = Number((await this.#program.match(servingPattern, startTimeoutMs))[1]);
  }

  async kill(): Promise<void> {
    await this.#program?.end('SIGKILL');
  }

  /** Stops it and restarts it with the file of an `etcdctl snapshot save`, on its port. */
  async restore(file: string): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
    const peer = 'http://127.0.0.1:0';
    const member = ['--name=one', `--initial-cluster=one=${peer}`, `--initial-advertise-peer-urls=${peer}`];
    this.control('snapshot', 'restore', file, `--data-dir=${this.#folder}`, ...member);
    await this.start();
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#program?.signal(signal);
  }

  /** Runs etcdctl against it and returns its output. Throws with its error output. */
  control(...args: string[]): string {
    const flags = [`--endpoints=${this.#scheme}://${this.endpoint}`, ...args];
    const { status, stdout, stderr } = spawnSync('etcdctl', flags, { encoding: 'utf8', env });
    if (status !== 0) throw new Error(`etcdctl ${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  async dispose(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
