import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { type Command, type CommandResponse, type Requester, StateMachine } from '@tenure/core';
import { decodeMessage, encodeFramed, frameHeadroomBytes, responseHeaderPrefix } from '@tenure/codec';
import { etcdserverpb, v3electionpb, v3lockpb } from '@tenure/protocol';
import { CommandRules } from '../../api/command-rules.ts';
import { KvService } from '../../api/kv-service.ts';
import { LongReplies } from '../../api/long-replies.ts';
import { type Caller, SlicedWork } from '../../api/sliced-work.ts';
import { systemRandom } from '../../random/system-random.ts';
import type { ReplicaAccess } from '../../replica/replica-access.ts';
import { systemClock } from '../../time/system-clock.ts';
import { type GrpcStatus, type Reply, builtReply } from '@tenure/grpc-server';
import { testConnection } from '@tenure/test-support';
import { WatchService } from '../../watch/watch-service.ts';
import { createQueueServices, type QueueLimits, type QueueServices } from '../create-queue-services.ts';

/** Called before a command is applied: may wait, or throw. */
type BeforeApply = (command: Command) => Promise<void> | void;

/** The services over the real ones for keys and watches, and a state machine without a log. */
export class QueueServer {
  readonly state = new StateMachine();
  readonly watch: WatchService;
  readonly services: QueueServices;
  /** The reads of ranges so far. */
  scans = 0;
  beforeApply: BeforeApply = () => {};
  beforeRead: () => Promise<void> = () => Promise.resolve();
  #index = 0;

  constructor(limits: Partial<QueueLimits> = {}) {
    const { state } = this;
    const headerPrefix = responseHeaderPrefix(1n, 2n);
    const replica: ReplicaAccess = {
      state,
      position: { index: 0, hash: '' },
      propose: (command) => this.propose(command),
      linearize: () => this.beforeRead(),
    };
    this.watch = new WatchService({
      clock: systemClock,
      random: systemRandom,
      history: state.history,
      access: state,
      headerPrefix,
      raftTerm: () => 0,
      progressNotifyIntervalMs: 600_000,
      maxRequestBytes: 1_000_000,
    });
    const kv = new KvService({
      replica,
      identity: { clusterId: 1n, memberId: 2n, headerPrefix },
      rules: new CommandRules({
        state: () => state,
        quota: { admit: () => undefined },
        maxRequestBytes: 1_000_000,
        maxTxnOps: 8,
        canAllApply: () => true,
      }),
      longReplies: new LongReplies(new SlicedWork(systemClock)),
    });
    const counted = {
      range: (request: Buffer, caller: Caller): Reply | Promise<Reply> => {
        const { rangeEnd } = decodeMessage(etcdserverpb.RangeRequestSchema, request);
        if (rangeEnd.length > 0) this.scans += 1;
        return kv.range(request, caller);
      },
      txn: kv.txn.bind(kv),
      deleteRange: kv.deleteRange.bind(kv),
    };
    const lease = { grant: () => Promise.reject(new Error('the leases of these tests are granted before')) };
    this.services = createQueueServices({ kv: counted, lease, watch: this.watch, replica }, limits);
  }

  /** All keys. */
  get keys(): string[] {
    const result = this.state.range({
      key: '\0',
      rangeEnd: '\0',
      limit: 0,
      revision: 0,
      sortOrder: 0,
      sortTarget: 0,
      keysOnly: true,
      countOnly: false,
      serializable: false,
      minModRevision: 0,
      maxModRevision: 0,
      minCreateRevision: 0,
      maxCreateRevision: 0,
    });
    if ('kind' in result) throw new Error(`the read was refused: ${result.code}`);
    return result.kvs.map(({ key }) => key);
  }

  async propose(command: Command): Promise<CommandResponse> {
    await this.beforeApply(command);
    this.#index += 1;
    const entry = { index: this.#index, epoch: 0, timeMs: 0, commands: [command] };
    const [response] = this.state.apply(entry).responses;
    this.watch.revisionAdvanced();
    return response!;
  }

  async grant(...ids: readonly bigint[]): Promise<void> {
    for (const id of ids) await this.propose({ kind: 'leaseGrant', id, ttlMs: 60_000, label: '' });
  }

  async delete(key: string): Promise<void> {
    await this.propose({ kind: 'deleteRange', deleteRange: { key, rangeEnd: '', prevKv: false } });
  }

  client(requester?: Requester): QueueClient {
    return new QueueClient(this, requester);
  }
}

/** A client with one connection, which can vanish. */
export class QueueClient {
  readonly #server: QueueServer;
  readonly #abort = new AbortController();
  readonly #caller: Caller;

  constructor(server: QueueServer, requester: Requester | undefined) {
    this.#server = server;
    this.#caller = { connection: testConnection(), signal: this.#abort.signal, requester };
  }

  vanish(): void {
    this.#abort.abort();
  }

  lock(name: string, lease: bigint): Promise<v3lockpb.LockResponse> {
    const request = framed(v3lockpb.LockRequestSchema, { name: Buffer.from(name), lease });
    return read(v3lockpb.LockResponseSchema, this.#server.services.lock.lock(request, this.#caller));
  }

  campaign(name: string, lease: bigint, value: string): Promise<v3electionpb.CampaignResponse> {
    const message = { name: Buffer.from(name), lease, value: Buffer.from(value) };
    const request = framed(v3electionpb.CampaignRequestSchema, message);
    return read(v3electionpb.CampaignResponseSchema, this.#server.services.election.campaign(request, this.#caller));
  }

  /** Observes until the call is over, and rejects then. */
  async observe(name: string, onLeader: (value: string) => Promise<void> | void): Promise<void> {
    const request = framed(v3electionpb.LeaderRequestSchema, { name: Buffer.from(name) });
    const call = { path: '', metadata: {}, deadlineMs: Infinity, ...this.#caller };
    await this.#server.services.election.observe(request, call, async (message) => {
      const { kv } = decodeMessage(v3electionpb.LeaderResponseSchema, message.subarray(frameHeadroomBytes));
      await onLeader(Buffer.from(kv?.value ?? []).toString());
    });
  }
}

/** How a call was refused: its code and text. */
export async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    const { code, message } = error as GrpcStatus;
    return `${code} ${message}`;
  }
  throw new Error('the call succeeded');
}

function framed<Desc extends DescMessage>(schema: Desc, message: MessageInitShape<Desc>): Buffer {
  return encodeFramed(schema, message).subarray(frameHeadroomBytes);
}

async function read<Desc extends DescMessage>(schema: Desc, reply: Promise<Reply>): Promise<MessageShape<Desc>> {
  return decodeMessage(schema, (await builtReply(await reply)).subarray(frameHeadroomBytes));
}
