import { etcdserverpb, rpcMethods } from '@tenure/protocol';
import { Code, Refusal } from '../../conformance/client/refusal.ts';
import { type HostileMethod, type HostileTarget, playHostileInputs, SeededRandom } from '@tenure/test-support';
import { type FloodReport, floodWithCalls } from './call-flood.ts';
import type { Existing } from './inputs/effect.ts';
import { MessageCalls } from './inputs/message-calls.ts';
import { MessageSoup } from './inputs/message-soup.ts';
import { TestedServer } from './tested-server.ts';

/** The parts of the server's state that refused inputs must not change. */
export interface Fingerprint {
  readonly kvHash: number;
  readonly revision: bigint;
  readonly compactRevision: bigint;
  readonly keys: readonly string[];
  readonly leases: readonly bigint[];
  readonly alarms: readonly etcdserverpb.AlarmMember[];
}

/** The memory in use, after a full garbage collection. */
export interface Footprint {
  readonly usedMiB: number;
  readonly residentMiB: number;
}

const existing: Existing = {
  keys: new Set(Array.from({ length: 100 }, (_, at) => `key/${String(at).padStart(3, '0')}`)),
  leases: new Set([1n, 7n, 1_000n, 2n ** 62n, -77n]),
};
const everything = { key: Buffer.of(0), rangeEnd: Buffer.of(0) };
const leaseTtlSeconds = 1_000_000n;
const hostileConcurrency = 24;
const hostileConnectionsPerRound = 100;
/** Methods that frames may call: none that could change anything if its message were replaced. */
const readingPaths = [
  '/etcdserverpb.KV/Range',
  '/etcdserverpb.Watch/Watch',
  '/etcdserverpb.Lease/LeaseKeepAlive',
  '/etcdserverpb.Lease/LeaseTimeToLive',
  '/etcdserverpb.Maintenance/Status',
  '/etcdserverpb.Maintenance/Snapshot',
  '/grpc.health.v1.Health/Watch',
] as const;
const mebibyte = 1024 * 1024;

/** Seeded inputs of every kind against one real server that holds some keys and leases. */
export class FuzzRun {
  readonly server: TestedServer;
  readonly #seed: number;
  readonly #target: HostileTarget;
  #hostileSeed: number;

  private constructor(server: TestedServer, seed: number) {
    this.server = server;
    this.#seed = seed;
    this.#hostileSeed = seed;
    this.#target = hostileTarget(seed);
  }

  static async start(seed: number): Promise<FuzzRun> {
    // Passwords are hashed one after the other: with the default cost, hundreds of them would keep their calls waiting.
    const server = await TestedServer.start({ hook: 'collect-garbage', args: ['--bcrypt-cost', '4'] });
    for (const ID of existing.leases) await server.lease.leaseGrant({ ID, TTL: leaseTtlSeconds });
    const leases = [...existing.leases, 0n];
    for (const [at, key] of [...existing.keys].entries()) {
      const lease = leases[at % leases.length] as bigint;
      await server.kv.put({ key: Buffer.from(key), value: Buffer.alloc(at * 10, at), lease });
    }
    return new FuzzRun(server, seed);
  }

  /** Messages that must be refused, or that only read. */
  sendRefused(messages: number): Promise<FloodReport> {
    const calls = new MessageCalls({ seed: this.#seed, existing, changes: false });
    return floodWithCalls({ address: this.server.address, calls, messages });
  }

  /** Messages of any kind, including those that write. */
  sendAny(messages: number): Promise<FloodReport> {
    const calls = new MessageCalls({ seed: this.#seed + 1, existing, changes: true });
    return floodWithCalls({ address: this.server.address, calls, messages });
  }

  /**
   * Connections that send invalid HTTP/2 or HTTP/1, until so many frames and requests were sent. Resolves with their
   * number.
   */
  async sendHostile(inputs: number): Promise<number> {
    const [host = '', port = ''] = this.server.address.split(':');
    let sent = 0;
    while (sent < inputs) {
      const run = { host, port: Number(port), target: this.#target, firstSeed: this.#hostileSeed };
      const connections = hostileConnectionsPerRound;
      sent += await playHostileInputs({ ...run, connections, concurrency: hostileConcurrency });
      this.#hostileSeed += connections;
    }
    return sent;
  }

  async fingerprint(): Promise<Fingerprint> {
    const { kv, lease, maintenance } = this.server;
    const { hash, compactRevision, header } = await maintenance.hashKV({});
    const { kvs } = await kv.range(everything);
    const { leases } = await lease.leaseLeases({});
    const { alarms } = await maintenance.alarm({});
    return {
      kvHash: hash,
      compactRevision,
      revision: header?.revision ?? 0n,
      keys: kvs.map(({ key }) => Buffer.from(key).toString('latin1')),
      leases: leases.map(({ ID }) => ID).toSorted((one, other) => (one < other ? -1 : 1)),
      alarms,
    };
  }

  /** Removes everything that changing messages have left, with its history. */
  async wipe(): Promise<void> {
    const { kv, lease } = this.server;
    const { leases } = await lease.leaseLeases({});
    for (const { ID } of leases) {
      await lease.leaseRevoke({ ID }).catch((error: unknown) => {
        // Short leases expire meanwhile. A lease that is listed but cannot be found would show in the gauge.
        if (!(error instanceof Refusal) || error.code !== Code.notFound) throw error;
      });
    }
    await kv.deleteRange(everything);
    await kv.put({ key: Buffer.from('last') });
    const { header } = await kv.deleteRange({ key: Buffer.from('last') });
    await kv.compact({ revision: header?.revision ?? 0n, physical: true });
  }

  async footprint(): Promise<Footprint> {
    const usedBytes = await this.server.usedBytes();
    const residentBytes = await this.server.metric('process_resident_memory_bytes');
    return { usedMiB: usedBytes / mebibyte, residentMiB: residentBytes / mebibyte };
  }

  /** One write of an ordinary client. */
  async put(): Promise<void> {
    await this.server.kv.put({ key: Buffer.from('key/after') });
  }
}

function hostileTarget(seed: number): HostileTarget {
  const soup = new MessageSoup(new SeededRandom(seed), { keys: [Buffer.from('key/001')], leases: [7n] });
  const [first, ...rest] = readingPaths.map((path): HostileMethod => {
    const method = rpcMethods.get(path);
    if (method === undefined) throw new Error(`${path} is no method`);
    return { path, message: soup.message(method.descriptor.input) };
  });
  return { methods: [first as HostileMethod, ...rest] };
}
