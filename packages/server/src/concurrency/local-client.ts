import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { etcdserverpb, type mvccpb } from '@tenure/protocol';
import { decodeMessage, encodeFramed, frameHeadroomBytes, latin1FromBytes } from '@tenure/codec';
import type { KvService } from '../api/kv-service.ts';
import type { LeaseService } from '../api/lease-service.ts';
import { throwRefused } from '../api/requested.ts';
import type { Caller } from '../api/sliced-work.ts';
import { answered } from '../api/status-of.ts';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { type CallerConnection, builtReply } from '@tenure/grpc-server';
import { LocalWatch, type WatchHandler } from './local-watch.ts';
import type { KeyPrefix } from './queue-key.ts';
import { Turns } from './turns.ts';

export interface LocalClientOptions {
  readonly kv: Pick<KvService, 'range' | 'txn' | 'deleteRange'>;
  readonly lease: Pick<LeaseService, 'grant'>;
  readonly watch: WatchHandler;
  readonly replica: Pick<ReplicaAccess, 'state' | 'linearize'>;
}

type Message<Desc extends DescMessage> = MessageInitShape<Desc>;
type TxnInit = Message<typeof etcdserverpb.TxnRequestSchema>;
type RangeInit = Message<typeof etcdserverpb.RangeRequestSchema>;

/** The one key that a read has looked for, if it was there at the revision of the header. */
export interface Found {
  readonly kv: mvccpb.KeyValue | undefined;
  readonly header: etcdserverpb.ResponseHeader;
}

export interface LeasedKey {
  readonly key: Uint8Array<ArrayBuffer>;
  readonly value: Uint8Array<ArrayBuffer>;
  readonly lease: bigint;
}

/** A key that a transaction has created, or found. */
export interface Created {
  readonly header: etcdserverpb.ResponseHeader;
  readonly createRevision: bigint;
  /** The key as it was found; undefined for a new one. */
  readonly before: mvccpb.KeyValue | undefined;
}

/** As etcd grants to a request that names no lease. */
const defaultTtlSeconds = 60n;
/** Reads of a queue at once. Further ones wait: each may scan a whole queue, and many waiters may wake together. */
const maxScans = 32;

const { CREATE } = etcdserverpb.RangeRequest_SortTarget;
const { ASCEND, DESCEND } = etcdserverpb.RangeRequest_SortOrder;
const { EQUAL } = etcdserverpb.Compare_CompareResult;
const createTarget = etcdserverpb.Compare_CompareTarget.CREATE;

/**
 * The requests that Lock and Election make of the services of their own server, in the name of their caller: what the
 * caller may not do, they may not do either.
 */
export class LocalClient {
  readonly #options: LocalClientOptions;
  /** Long scans are queued by connection: those of waiters must not be refused for other requests of their clients. */
  readonly #connection: CallerConnection = { remoteAddress: '', commonName: undefined };
  readonly #scans = new Turns(maxScans);

  constructor(options: LocalClientOptions) {
    this.#options = options;
  }

  /**
   * The same user by the present auth data, for what a call does after it has waited: as with a watch, the user's
   * permissions count, and not the token, which may have ended meanwhile.
   */
  asOfNow(caller: Caller): Caller {
    const { connection, signal, requester } = caller;
    if (requester === undefined || requester.authRevision <= 0) return caller;
    const { revision } = this.#options.replica.state.auth;
    return { connection, signal, requester: { user: requester.user, authRevision: revision } };
  }

  /** Throws the refusal of a caller who may not read all the keys. */
  async requireRead({ key, rangeEnd }: KeyPrefix, { requester }: Caller): Promise<void> {
    const { replica } = this.#options;
    if (replica.state.accessOf(requester) === undefined) return;
    await answered(replica.linearize());
    const range = { key: latin1FromBytes(key), rangeEnd: latin1FromBytes(rangeEnd) };
    throwRefused(replica.state.accessOf(requester)?.read(range));
  }

  async grant(caller: Caller): Promise<bigint> {
    const request = encoded(etcdserverpb.LeaseGrantRequestSchema, { TTL: defaultTtlSeconds });
    const reply = await this.#options.lease.grant(request, caller);
    return decoded(etcdserverpb.LeaseGrantResponseSchema, reply).ID;
  }

  /** Puts a key that does not exist; one that exists stays as it is. */
  async createKey({ key, value, lease }: LeasedKey, caller: Caller): Promise<Created> {
    const put = { request: { case: 'requestPut' as const, value: { key, value, lease } } };
    const get = { request: { case: 'requestRange' as const, value: { key } } };
    const { header, responses } = await this.#txn(
      { compare: [createdAt(key, 0n)], success: [put], failure: [get] },
      caller,
    );
    const response = responses[0]?.response;
    const before = response?.case === 'responseRange' ? response.value.kvs[0] : undefined;
    return { header: header!, createRevision: before?.createRevision ?? header!.revision, before };
  }

  /** Puts a key that was created at that revision. Undefined if there is none such. */
  async putCreated(
    { key, value, lease }: LeasedKey,
    createRevision: bigint,
    caller: Caller,
  ): Promise<etcdserverpb.ResponseHeader | undefined> {
    const put = { request: { case: 'requestPut' as const, value: { key, value, lease } } };
    const reply = await this.#txn({ compare: [createdAt(key, createRevision)], success: [put] }, caller);
    return reply.succeeded ? reply.header! : undefined;
  }

  /** Deletes a key that was created at that revision, if there is one such. */
  async deleteCreated(
    key: Uint8Array<ArrayBuffer>,
    createRevision: bigint,
    caller: Caller,
  ): Promise<etcdserverpb.ResponseHeader> {
    const deletion = { request: { case: 'requestDeleteRange' as const, value: { key } } };
    const reply = await this.#txn({ compare: [createdAt(key, createRevision)], success: [deletion] }, caller);
    return reply.header!;
  }

  async delete(key: Uint8Array<ArrayBuffer>, caller: Caller): Promise<etcdserverpb.ResponseHeader> {
    const request = encoded(etcdserverpb.DeleteRangeRequestSchema, { key });
    const reply = await this.#options.kv.deleteRange(request, caller);
    return decoded(etcdserverpb.DeleteRangeResponseSchema, await builtReply(reply)).header!;
  }

  /** One key. `serializable`: in the state that this server knows. */
  async get(
    key: Uint8Array<ArrayBuffer>,
    { serializable }: { readonly serializable: boolean },
    caller: Caller,
  ): Promise<Found> {
    const { header, kvs } = await this.#range({ key, serializable }, caller);
    return { header: header!, kv: kvs[0] };
  }

  /** The oldest key of a queue, in a state that is no older than the call. */
  oldest(queue: KeyPrefix, caller: Caller): Promise<Found> {
    const range = { ...queue, limit: 1n, sortTarget: CREATE, sortOrder: ASCEND };
    return this.#scan(range, caller);
  }

  /** The youngest of the keys that are older than a revision, in the state that this server knows. */
  async nextOlder(queue: KeyPrefix, revision: bigint, caller: Caller): Promise<Found> {
    // 0 would mean any revision; a key of revision 1 is that of no request.
    const maxCreateRevision = revision > 1n ? revision - 1n : 1n;
    const range = {
      ...queue,
      limit: 1n,
      sortTarget: CREATE,
      sortOrder: DESCEND,
      maxCreateRevision,
      keysOnly: true,
      serializable: true,
    };
    return this.#scan(range, caller);
  }

  watch(caller: Caller): LocalWatch {
    return new LocalWatch(this.#options.watch, caller);
  }

  async #txn(txn: TxnInit, caller: Caller): Promise<etcdserverpb.TxnResponse> {
    const reply = await this.#options.kv.txn(encoded(etcdserverpb.TxnRequestSchema, txn), caller);
    return decoded(etcdserverpb.TxnResponseSchema, await builtReply(reply));
  }

  async #range(range: RangeInit, caller: Caller): Promise<etcdserverpb.RangeResponse> {
    const reply = await this.#options.kv.range(encoded(etcdserverpb.RangeRequestSchema, range), caller);
    return decoded(etcdserverpb.RangeResponseSchema, await builtReply(reply));
  }

  async #scan(range: RangeInit, { signal, requester }: Caller): Promise<Found> {
    const { header, kvs } = await this.#scans.run(() =>
      this.#range(range, { connection: this.#connection, signal, requester }),
    );
    return { header: header!, kv: kvs[0] };
  }
}

/** The comparison that a key was created at a revision; 0n: that there is no such key. */
function createdAt(key: Uint8Array<ArrayBuffer>, createRevision: bigint): Message<typeof etcdserverpb.CompareSchema> {
  return {
    result: EQUAL,
    target: createTarget,
    key,
    targetUnion: { case: 'createRevision', value: createRevision },
  };
}

function encoded<Desc extends DescMessage>(schema: Desc, message: MessageInitShape<Desc>): Buffer {
  return encodeFramed(schema, message).subarray(frameHeadroomBytes);
}

function decoded<Desc extends DescMessage>(schema: Desc, framed: Buffer): MessageShape<Desc> {
  return decodeMessage(schema, framed.subarray(frameHeadroomBytes));
}
