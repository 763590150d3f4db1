import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const startTimeoutMs = 30_000;
const maxKeptChars = 64 * 1024;
/** Version 2 of its API was etcdctl's default once. */
const env = { ...process.env, ETCDCTL_API: '3' };

/** Children still alive: none may outlive the test process, however that ends. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** Whether this machine has etcd and etcdctl. Where the tests must all run, their absence is a failure. */
export function hasEtcd(): boolean {
  const missing = [['etcd', '--version'] as const, ['etcdctl', 'version'] as const].filter(
    ([program, argument]) => spawnSync(program, [argument], { stdio: 'ignore', env }).status !== 0,
  );
  if (missing.length === 0) return true;
  const message = 'etcd or etcdctl is not installed (apt-get install etcd-server etcd-client)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`tests of the etcd engine are skipped: ${message}`);
  return false;
}

/** A real etcd of one member, which can be killed and started again with its data and on its port. */
export class EtcdProcess {
  readonly #folder = mkdtempSync(join(tmpdir(), 'tenure-etcd-'));
  readonly #flags: readonly string[];
  readonly #scheme: 'http' | 'https';
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();
  #output = '';
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

  async start(): Promise<void> {
    const clients = `${this.#scheme}://127.0.0.1:${this.#port}`;
    const anyPort = 'http://127.0.0.1:0';
    this.#output = '';
    const child = spawn(
      'etcd',
      [
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
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    this.#child = child;
    alive.add(child);
    this.#exited = new Promise((resolve) => {
      child.once('exit', () => {
        alive.delete(child);
        resolve();
      });
    });
    this.#port = await this.#servingPort(child);
  }

  #servingPort(child: ChildProcess): Promise<number> {
    return new Promise((resolve, reject) => {
      const fail = (why: string): void => reject(new Error(`etcd does not serve (${why}):\n${this.#output}`));
      const timer = setTimeout(() => fail('time is up'), startTimeoutMs);
      child.once('exit', () => fail('it has ended'));
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-maxKeptChars);
        const port = /"msg":"serving client traffic[^"]*",.*?"address":"[^"]*:(\d+)"/.exec(this.#output)?.[1];
        if (port === undefined) return;
        clearTimeout(timer);
        resolve(Number(port));
      });
    });
  }

  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.#exited;
  }

  /** Ends it and starts it again with what `etcdctl snapshot save` has put in a file, on its port. */
  async restore(file: string): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
    const peer = 'http://127.0.0.1:0';
    const member = ['--name=one', `--initial-cluster=one=${peer}`, `--initial-advertise-peer-urls=${peer}`];
    this.control('snapshot', 'restore', file, `--data-dir=${this.#folder}`, ...member);
    await this.start();
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }

  /** Runs etcdctl against it and gives what it prints. Throws with what it complains about. */
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
