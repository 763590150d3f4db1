import { spawn } from 'node:child_process';
import { endWithUs } from '@tenure/test-support';
import type { RunningServer } from '../../conformance/servers/server-options.ts';
import { etcdctlEnv, etcdctlProgram, runEtcdctl } from './etcdctl.ts';

/** What one run of etcdctl printed, without what differs between any two servers. */
export interface Recorded {
  readonly command: string;
  readonly code: number | 'stopped';
  readonly out: string;
  readonly err: string;
}

const untilTimeoutMs = 60_000;

/** Runs etcdctl on one server, and records it. */
export class Recorder {
  readonly recorded: Recorded[] = [];
  readonly #server: RunningServer;

  constructor(server: RunningServer) {
    this.#server = server;
  }

  get address(): string {
    return this.#server.address;
  }

  /** Its output as it is: for ids that a later command needs. */
  async run(args: readonly string[], input = ''): Promise<string> {
    const { code, out, err } = await runEtcdctl([`--endpoints=${this.address}`, ...args], input);
    this.#record(args, code, out, err);
    return out;
  }

  /** In hex, as commands take it. */
  async memberId(): Promise<string> {
    const { out } = await runEtcdctl([`--endpoints=${this.address}`, 'member', 'list']);
    return /^([0-9a-f]+), started/.exec(out)?.[1] ?? '';
  }

  /** Records the last line of stdout alone, of a command that reports its progress. */
  async runQuietly(args: readonly string[]): Promise<void> {
    const { code, out } = await runEtcdctl([`--endpoints=${this.address}`, ...args]);
    this.#record(args, code, out.trimEnd().split('\n').at(-1) ?? '', '');
  }

  /** Runs a command that has no end of its own while `work` runs. */
  async beside(args: readonly string[], work: () => Promise<void>): Promise<void> {
    const child = endWithUs(spawn(etcdctlProgram, [`--endpoints=${this.address}`, ...args], { env: etcdctlEnv }));
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    try {
      await work();
      this.#record(args, 'stopped', '', '');
    } finally {
      child.kill('SIGINT');
      await ended;
    }
  }

  /** Runs a command until it prints this, and records that once. */
  async polled(args: readonly string[], expected: string): Promise<void> {
    const untilMs = performance.now() + untilTimeoutMs;
    for (;;) {
      const { code, out } = await runEtcdctl([`--endpoints=${this.address}`, ...args]);
      if (out === expected) return this.#record(args, code, out, '');
      if (performance.now() > untilMs) throw new Error(`etcdctl ${args.join(' ')} prints ${out} and not ${expected}`);
    }
  }

  /**
   * Runs a command that has no end of its own until its output matches, does `next`, and stops it like Ctrl-C. The
   * match is recorded.
   */
  async until(
    pattern: RegExp,
    args: readonly string[],
    { input, next }: { readonly input?: string; readonly next?: () => Promise<unknown> } = {},
  ): Promise<void> {
    const child = endWithUs(spawn(etcdctlProgram, [`--endpoints=${this.address}`, ...args], { env: etcdctlEnv }));
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    let out = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), untilTimeoutMs);
    try {
      child.stdin.on('error', () => undefined);
      if (input !== undefined) child.stdin.write(input);
      const matched = new Promise<void>((resolve) => {
        child.stdout.setEncoding('utf8').on('data', (text: string) => {
          out += text;
          if (pattern.test(out)) resolve();
        });
      });
      await Promise.race([matched, ended]);
      if (pattern.test(out)) await next?.();
    } finally {
      child.kill('SIGINT');
      await ended;
      clearTimeout(timer);
    }
    const match = pattern.exec(out);
    if (match === null) throw new Error(`etcdctl ${args.join(' ')} ended without ${pattern}: ${out}`);
    this.#record(args, 'stopped', match[0], '');
  }

  #record(args: readonly string[], code: number | 'stopped', out: string, err: string): void {
    const command = args.join(' ').replaceAll(this.address, 'SERVER');
    this.recorded.push({ command: this.#plain(command), code, out: this.#plain(out), err: this.#plain(errors(err)) });
  }

  /** Without addresses, ids, times, and what a server stores or counts in its own way. */
  #plain(text: string): string {
    const { address, advertisedClientUrl } = this.#server;
    return text
      .replaceAll(address, 'SERVER')
      .replaceAll(advertisedClientUrl, 'ADVERTISED')
      .replaceAll(/\b[0-9a-f]{13,16}\b/g, 'ID')
      .replaceAll(/"(cluster_id|member_id|ID|leader|raft_term|raftTerm)":\d+/g, '"$1":N')
      .replaceAll(/^"(ClusterID|MemberID|RaftTerm)" : \d+$/gm, '"$1" : N')
      .replaceAll(/"(raftIndex|raftAppliedIndex|dbSize|dbSizeInUse|hash)":\d+/g, '"$1":N')
      .replaceAll(/\b\d+(?:\.\d+)?(?:µs|ms|s)\b(?= *$)/gm, 'TIME')
      .replaceAll(/remaining\(\d+s\)/g, 'remaining(TIME)')
      .replaceAll(/\b\d+\.\d+ MB/g, 'SIZE')
      .replaceAll(/\/tmp\/\S+/g, 'FILE');
  }
}

/** The log lines of etcdctl have times and addresses of its own connections. */
function errors(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.startsWith('{"level"'))
    .join('\n');
}
