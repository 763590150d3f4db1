import { ServeProcess } from '@tenure/test-support';
import { etcdserverpb } from '@tenure/protocol';
import { GrpcClient, type Metadata } from '../../conformance/client/grpc-client.ts';
import { serviceCalls, type ServiceCalls } from '../../conformance/client/service-calls.ts';

export interface MemberOptions {
  readonly name: string;
  readonly engine: string;
  /** Beside name, engine and address. */
  readonly flags?: readonly string[];
  /** The address to listen at; by default a port that the system chooses. */
  readonly listen?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Goes with every call of `client`, as it is at that moment. */
  readonly metadata?: Metadata;
}

/** One server of a cluster: a process, and a connection to it. */
export class ClusterMember {
  readonly name: string;
  readonly process: ServeProcess;
  readonly address: string;
  readonly client: GrpcClient;
  readonly kv: ServiceCalls<typeof etcdserverpb.KV.method>;
  readonly lease: ServiceCalls<typeof etcdserverpb.Lease.method>;
  readonly maintenance: ServiceCalls<typeof etcdserverpb.Maintenance.method>;
  readonly cluster: ServiceCalls<typeof etcdserverpb.Cluster.method>;
  readonly auth: ServiceCalls<typeof etcdserverpb.Auth.method>;
  isAlive = true;

  private constructor(name: string, process: ServeProcess, address: string, metadata: Metadata) {
    this.name = name;
    this.process = process;
    this.address = address;
    this.client = new GrpcClient(address, {}, metadata);
    this.kv = serviceCalls(this.client, etcdserverpb.KV);
    this.lease = serviceCalls(this.client, etcdserverpb.Lease);
    this.maintenance = serviceCalls(this.client, etcdserverpb.Maintenance);
    this.cluster = serviceCalls(this.client, etcdserverpb.Cluster);
    this.auth = serviceCalls(this.client, etcdserverpb.Auth);
    void process.ended.then(() => (this.isAlive = false));
  }

  static async start(options: MemberOptions): Promise<ClusterMember> {
    const { name, engine, flags = [], listen = '127.0.0.1:0', env, metadata = {} } = options;
    const urls = ['--listen-client-urls', `http://${listen}`];
    const process = new ServeProcess(['serve', '--name', name, '--engine', engine, ...urls, ...flags], env);
    const [url = ''] = await process.ready();
    return new ClusterMember(name, process, url.replace('http://', ''), metadata);
  }

  /** The leader in the view of this server, and whether it is this server. */
  async leadership(): Promise<{ leader: bigint; epoch: bigint; leads: boolean }> {
    const { header, leader, raftTerm } = await this.maintenance.status({}, { deadlineMs: 2_000 });
    return { leader, epoch: raftTerm, leads: leader !== 0n && leader === header?.memberId };
  }

  async put(key: string, value: string): Promise<number> {
    const { header } = await this.kv.put({ key: Buffer.from(key), value: Buffer.from(value) });
    return Number(header?.revision);
  }

  /** The value of a key by a linearizable read; undefined if the key does not exist. */
  async get(key: string): Promise<string | undefined> {
    const { kvs } = await this.kv.range({ key: Buffer.from(key) });
    const value = kvs[0]?.value;
    return value === undefined ? undefined : Buffer.from(value).toString();
  }

  /** The reply of /readyz: its status and its text. */
  async ready(): Promise<{ status: number; text: string }> {
    if (!this.isAlive) throw new Error(`${this.name} has ended: ${this.process.err}`);
    const reply = await fetch(`http://${this.address}/readyz?verbose`);
    return { status: reply.status, text: await reply.text() };
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.isAlive = false;
    await this.process.end(signal);
    this.client.close();
  }
}
