import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ServeProcess } from '@tenure/test-support';
import { etcdserverpb } from '@tenure/protocol';
import { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { serviceCalls } from '../../conformance/client/service-calls.ts';

/** What SIGUSR2 makes the server do: give back all garbage, or keep its event loop busy for SPIN_MS. */
export type Hook = 'collect-garbage' | 'spin';

export interface TestedServerOptions {
  readonly engine?: 'file' | 'memory';
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A command that runs the server, and leaves it the process that was started. */
  readonly under?: readonly string[];
  readonly hook?: Hook;
  /** A folder that outlives the server; without one it has its own, which goes with it. */
  readonly dataDir?: string;
}

const anyPort = 'http://127.0.0.1:0';
const pollMs = 50;
/** What the hook says when it has done so. */
const collected = 'garbage collected\n';

/** The built command as a process, with a client of it and a look at its metrics. */
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

  /** The value of a metric without labels, or of the one whose labels are given as they stand in the text. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`http://${this.address}/metrics`)).text();
    const line = text.split('\n').find((each) => each.startsWith(`${name} `));
    if (line === undefined) throw new Error(`the server has no metric ${name}`);
    return Number(line.slice(name.length + 1));
  }

  /** The longest time that the event loop was held up since the last call, in milliseconds. */
  async longestPauseMs(): Promise<number> {
    return (await this.metric('tenure_event_loop_delay_seconds{quantile="1"}')) * 1000;
  }

  /** Resolves once the metric is at most `bound`, or with what it is when the patience is at its end. */
  async settled(name: string, bound: number, patienceMs: number): Promise<number> {
    const untilMs = performance.now() + patienceMs;
    for (;;) {
      const value = await this.metric(name);
      if (value <= bound || performance.now() > untilMs) return value;
      await delay(pollMs);
    }
  }

  /** Bytes that are in use in and beside V8's heap, once garbage was collected. Needs the hook `collect-garbage`. */
  async usedBytes(): Promise<number> {
    const collectedBefore = this.#collections;
    this.process.signal('SIGUSR2');
    while (this.#collections === collectedBefore) await delay(pollMs);
    const heapBytes = await this.metric('nodejs_heap_size_used_bytes');
    return heapBytes + (await this.metric('nodejs_external_memory_bytes'));
  }

  /** What it wrote on stderr, less what a hook said. */
  get complaints(): string {
    return this.process.err.replaceAll(collected, '');
  }

  get #collections(): number {
    return this.process.err.split(collected).length - 1;
  }

  /** Ends the process by a signal and removes its folder. Throws when SIGTERM does not end it in order. */
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
