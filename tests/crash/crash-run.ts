import { SeededRandom, ServeProcess } from '@tenure/test-support';
import { etcdserverpb } from '@tenure/protocol';
import { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { serviceCalls } from '../../conformance/client/service-calls.ts';
import { StallMeter } from '../cluster/stall-meter.ts';
import { EventLog } from './event-log.ts';
import { KeptLease } from './kept-lease.ts';
import { Writer } from './writer.ts';

export interface CrashRunOptions {
  readonly seed: number;
  readonly kills: number;
  readonly dataDir: string;
  /** Entries between two snapshots: few, so that many kills hit a snapshot or the trim after it. */
  readonly snapshotCount: number;
  /** The TTL of leases that are not renewed: short enough for some to expire within the run. */
  readonly abandonedTtlMs: number;
}

export interface CrashReport {
  readonly kills: number;
  readonly acknowledgedWrites: number;
  readonly events: number;
  readonly abandonedEnded: number;
}

const writers = 6;
const keptLeases = 4;
const keptTtlMs = 6_000;
/**
 * What one change of leader may add to an abandoned lease (a heartbeat interval), plus the error of measuring from
 * outside.
 */
const addedPerRestartMs = 200 + 150;
/** Values that never change, so that a snapshot takes a while. */
const ballastKeys = 2_000;

interface Abandoned {
  readonly id: bigint;
  readonly grantedMs: number;
  /** The total uptime of servers since the grant, as far as this process knows. */
  ledMs: number;
  restarts: number;
}

/** Kills a loaded server with SIGKILL repeatedly, and compares its recovered content with the acknowledged writes. */
export class CrashRun {
  readonly #options: CrashRunOptions;
  readonly #random: SeededRandom;
  readonly #writers: Writer[];
  readonly #events = new EventLog('writer');
  readonly #kept: KeptLease[] = [];
  #abandoned: Abandoned[] = [];
  #abandonedEnded = 0;
  #nextLease = 1_000n;
  #server: ServeProcess | undefined;

  constructor(options: CrashRunOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#writers = Array.from({ length: writers }, (_, at) => {
      return new Writer(`writer-${at}`, new SeededRandom(this.#random.integer(0, 2 ** 31)));
    });
  }

  async run(): Promise<CrashReport> {
    const stalls = new StallMeter(() => (this.#server === undefined ? [] : [this.#server.pid]));
    try {
      for (let kill = 0; kill < this.#options.kills; kill += 1) await this.#runServer(stalls, kill === 0, true);
      await this.#runServer(stalls, false, false);
    } finally {
      stalls.stop();
    }
    const acknowledged = this.#writers.flatMap((writer) => writer.acknowledged);
    this.#events.check(acknowledged);
    return {
      kills: this.#options.kills,
      acknowledgedWrites: acknowledged.length,
      events: this.#events.length,
      abandonedEnded: this.#abandonedEnded,
    };
  }

  /** One run of the server: start, compare, load, kill. */
  async #runServer(stalls: StallMeter, first: boolean, kill: boolean): Promise<void> {
    const server = new ServeProcess([
      'serve',
      `--data-dir=${this.#options.dataDir}`,
      `--snapshot-count=${this.#options.snapshotCount}`,
      '--listen-client-urls=http://127.0.0.1:0',
    ]);
    this.#server = server;
    const [url = ''] = await server.ready();
    const readyMs = performance.now();
    const client = new GrpcClient(url.replace('http://', ''));
    try {
      if (first) await this.#prepare(client);
      else await this.#compare(client, readyMs, stalls);
      await this.#abandonOne(client, readyMs);
      if (kill) await this.#loadUntilKilled(server, client, readyMs);
    } finally {
      await server.end(kill ? 'SIGKILL' : 'SIGTERM');
      client.close();
    }
  }

  async #prepare(client: GrpcClient): Promise<void> {
    const kv = serviceCalls(client, etcdserverpb.KV);
    const value = Buffer.alloc(1_000, 'b');
    for (let at = 0; at < ballastKeys; at += 100) {
      await kv.txn({
        success: Array.from({ length: 100 }, (_, more) => ({
          request: { case: 'requestPut', value: { key: Buffer.from(`ballast/${at + more}`), value } },
        })),
      });
    }
    for (let at = 1; at <= keptLeases; at += 1) {
      const lease = new KeptLease(BigInt(at), keptTtlMs);
      await lease.grant(client);
      this.#kept.push(lease);
    }
  }

  async #compare(client: GrpcClient, readyMs: number, stalls: StallMeter): Promise<void> {
    const kv = serviceCalls(client, etcdserverpb.KV);
    for (const lease of this.#kept) await lease.check(client);
    const { kvs, header } = await kv.range({ key: Buffer.from('writer'), rangeEnd: Buffer.from('writes') });
    const held = new Map(kvs.map(({ key, value }) => [Buffer.from(key).toString(), Buffer.from(value).toString()]));
    for (const writer of this.#writers) writer.check(held);
    await this.#events.followTo(client, Number(header?.revision));
    const ballast = await kv.range({ key: Buffer.from('ballast'), rangeEnd: Buffer.from('ballasu'), countOnly: true });
    if (ballast.count !== BigInt(ballastKeys)) throw new Error(`${ballast.count} of ${ballastKeys} keys are left`);
    await this.#checkAbandoned(client, readyMs, stalls);
  }

  /** No abandoned lease may live longer than rule 7 allows, after any number of restarts. */
  async #checkAbandoned(client: GrpcClient, readyMs: number, stalls: StallMeter): Promise<void> {
    const lease = serviceCalls(client, etcdserverpb.Lease);
    const { abandonedTtlMs } = this.#options;
    const left: Abandoned[] = [];
    for (const each of this.#abandoned) {
      each.restarts += 1;
      const { TTLMs } = await lease.leaseTimeToLive({ ID: each.id });
      const ledMs = each.ledMs + (performance.now() - readyMs);
      const owedMs = stalls.between(each.grantedMs, performance.now());
      const boundMs = (abandonedTtlMs * 5) / 3 + each.restarts * addedPerRestartMs + 500 + owedMs;
      if (TTLMs <= 0n) this.#abandonedEnded += 1;
      else if (ledMs > boundMs) throw new Error(`lease ${each.id} lives after ${ledMs} ms; the bound is ${boundMs}`);
      else left.push(each);
    }
    this.#abandoned = left;
  }

  async #abandonOne(client: GrpcClient, readyMs: number): Promise<void> {
    const id = this.#nextLease++;
    await serviceCalls(client, etcdserverpb.Lease).leaseGrant({ ID: id, TTLMs: BigInt(this.#options.abandonedTtlMs) });
    // The server's uptime before the grant does not count.
    const grantedMs = performance.now();
    this.#abandoned.push({ id, grantedMs, ledMs: -(grantedMs - readyMs), restarts: 0 });
  }

  async #loadUntilKilled(server: ServeProcess, client: GrpcClient, readyMs: number): Promise<void> {
    const load = [
      ...this.#writers.map((writer) => writer.run(client)),
      ...this.#kept.map((lease) => lease.keep(client)),
    ];
    const lifeMs = this.#random.integer(30, 700);
    await Promise.race([new Promise((resolve) => setTimeout(resolve, lifeMs)), server.ended]);
    await server.end('SIGKILL');
    const killedMs = performance.now();
    for (const each of this.#abandoned) each.ledMs += killedMs - readyMs;
    for (const each of [...this.#writers, ...this.#kept]) each.stop();
    await Promise.all(load);
  }
}
