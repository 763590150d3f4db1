import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ServeProcess } from '@tenure/test-support';
import { etcdserverpb } from '@tenure/protocol';
import { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { serviceCalls } from '../../conformance/client/service-calls.ts';

/** The effect of SIGUSR2 on the server: a full garbage collection, or an event loop that is blocked for SPIN_MS. */
export type Hook = 'collect-garbage' | 'spin';

export interface TestedServerOptions {
  readonly engine?: 'file' | 'memory';
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A command that runs the server as the process that was started. */
  readonly under?: readonly string[];
  readonly hook?: Hook;
  /** A folder that outlives the server. By default the server has its own, which is removed with it. */
  readonly dataDir?: string;
}

const anyPort = 'http://127.0.0.1:0';
const pollMs = 50;
/** The hook's output after each signal. */
const collected = 'garbage collected\n';

/** The built command as a process, with a client and access to its metrics. */
export class TestedServer {
  readonly process: ServeProcess;
  /** host:port */
  readonly address: string;
  readonly client: GrpcClient;
  readonly #ownFolder: string | undefined;

  private constructor(process: ServeProcess, address: string, ownFolder: string | undefined) {
    this.process = process;
    this.address = address;
    this.client = new GrpcClient(address);
    this.#ownFolder = ownFolder;
  }

  static async start(options: TestedServerOptions = {}): Promise<TestedServer> {
    const { engine = 'file', args = [], env = {}, under = [], hook } = options;
    const ownFolder = options.dataDir === undefined ? await temporaryFolder() : undefined;
    const folder = options.dataDir ?? (ownFolder as string);
    const hookFile = hook && fileURLToPath(new URL(`hooks/${hook}.mjs`, import.meta.url));
    const nodeOptions = hookFile === undefined ? {} : { NODE_OPTIONS: `--import=file://${hookFile}` };
    const process = new ServeProcess(
      ['serve', `--engine=${engine}`, `--data-dir=${folder}`, `--listen-client-urls=${anyPort}`, ...args],
      { ...nodeOptions, ...env },
      under,
    );
    const [url = ''] = await process.ready();
    return new TestedServer(process, url.replace('http://', ''), ownFolder);
  }

  get kv() {
    return serviceCalls(this.client, etcdserverpb.KV);
  }

  get lease() {
    return serviceCalls(this.client, etcdserverpb.Lease);
  }

  get maintenance() {
    return serviceCalls(this.client, etcdserverpb.Maintenance);
  }

  /** The value of a metric without labels, or of one with its labels as written in the text. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`http://${this.address}/metrics`)).text();
    const line = text.split('\n').find((each) => each.startsWith(`${name} `));
    if (line === undefined) throw new Error(`the server has no metric ${name}`);
    return Number(line.slice(name.length + 1));
  }

  /** The longest time that the event loop was blocked since the last call, in milliseconds. */
  async longestPauseMs(): Promise<number> {
    return (await this.metric('tenure_event_loop_delay_seconds{quantile="1"}')) * 1000;
  }

  /** Resolves when the metric is at most `bound`, or with its value at the timeout. */
  async settled(name: string, bound: number, patienceMs: number): Promise<number> {
    const untilMs = performance.now() + patienceMs;
    for (;;) {
      const value = await this.metric(name);
      if (value <= bound || performance.now() > untilMs) return value;
      await delay(pollMs);
    }
  }

  /** The bytes in use in V8's heap and outside it, after a garbage collection. Needs the hook `collect-garbage`. */
  async usedBytes(): Promise<number> {
    const collectedBefore = this.#collections;
    this.process.signal('SIGUSR2');
    while (this.#collections === collectedBefore) await delay(pollMs);
    const heapBytes = await this.metric('nodejs_heap_size_used_bytes');
    return heapBytes + (await this.metric('nodejs_external_memory_bytes'));
  }

  /** The server's output on stderr, without that of a hook. */
  get complaints(): string {
    return this.process.err.replaceAll(collected, '');
  }

  get #collections(): number {
    return this.process.err.split(collected).length - 1;
  }

  /** Ends the process with a signal and removes its folder. Throws when SIGTERM does not end it with code 0. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.client.close();
    const end = await this.process.end(signal);
    if (this.#ownFolder !== undefined) await rm(this.#ownFolder, { recursive: true, force: true });
    if (signal === 'SIGTERM' && end.code !== 0) throw new Error(`the server ended with ${end.code}: ${end.err}`);
  }
}

export function temporaryFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'tenure-robustness-'));
}
