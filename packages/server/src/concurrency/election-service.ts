import { v3electionpb } from '@tenure/protocol';
import { decodeRequest, encodeFramed } from '@tenure/codec';
import type { Caller } from '../api/sliced-work.ts';
import { type GrpcStatus, type Reply, replyOfBytes } from '@tenure/grpc-server';
import type { ServerStreamHandler } from '../transport/transport.ts';
import type { CallLimit } from './call-limit.ts';
import { LeaderObservation } from './leader-observation.ts';
import type { Created, LeasedKey, LocalClient } from './local-client.ts';
import { queueKey, queueOf } from './queue-key.ts';
import type { QueuePlaces } from './queue-place.ts';
import { refusedAs, withoutCodes } from './refused-as.ts';

export interface ElectionServiceOptions {
  readonly client: LocalClient;
  readonly places: QueuePlaces;
  /** On the calls that may wait. */
  readonly limit: CallLimit;
  readonly observers: CallLimit;
}

/** Etcd's Election service: a queue as that of a lock, in which the value of the oldest key says who leads. */
export class ElectionService {
  readonly #options: ElectionServiceOptions;

  constructor(options: ElectionServiceOptions) {
    this.#options = options;
  }

  async campaign(request: Buffer, caller: Caller): Promise<Reply> {
    const campaign = decodeRequest(v3electionpb.CampaignRequestSchema, request);
    return this.#options.limit.run(() => withoutCodes(this.#campaign(campaign, caller)));
  }

  async proclaim(request: Buffer, caller: Caller): Promise<Reply> {
    const { leader, value } = decodeRequest(v3electionpb.ProclaimRequestSchema, request);
    if (leader === undefined) throw refusedAs('missingLeader');
    const { client } = this.#options;
    const lease = leader.lease === 0n ? await withoutCodes(client.grant(caller)) : leader.lease;
    const key = { key: Uint8Array.from(leader.key), value: Uint8Array.from(value), lease };
    const header = await withoutCodes(client.putCreated(key, leader.rev, caller));
    if (header === undefined) throw refusedAs('notLeader');
    return encodeFramed(v3electionpb.ProclaimResponseSchema, { header });
  }

  async leader(request: Buffer, caller: Caller): Promise<Reply> {
    const { name } = decodeRequest(v3electionpb.LeaderRequestSchema, request);
    const { kv, header } = await withoutCodes(this.#options.client.oldest(queueOf(name), caller));
    if (kv === undefined) throw refusedAs('noLeader');
    return replyOfBytes(encodeFramed(v3electionpb.LeaderResponseSchema, { header, kv }));
  }

  /** Of a key that is gone, or was created at another revision, nothing is deleted, which is no error. */
  async resign(request: Buffer, caller: Caller): Promise<Reply> {
    const { leader } = decodeRequest(v3electionpb.ResignRequestSchema, request);
    if (leader === undefined) throw refusedAs('missingLeader');
    const key = Uint8Array.from(leader.key);
    const header = await withoutCodes(this.#options.client.deleteCreated(key, leader.rev, caller));
    return encodeFramed(v3electionpb.ResignResponseSchema, { header });
  }

  /**
   * Sends the leader there is, then each change. In etcd the stream ends without an error for any reason, also for a
   * caller who may not read the keys; here with the reason, so that the client knows whether to call again.
   */
  readonly observe: ServerStreamHandler = (request, caller, send) => {
    const { client, observers } = this.#options;
    const { name } = decodeRequest(v3electionpb.LeaderRequestSchema, request);
    const observation = new LeaderObservation(client, queueOf(name), caller);
    return observers.run(() =>
      observation.run((leader) => send(encodeFramed(v3electionpb.LeaderResponseSchema, leader))),
    );
  };

  async #campaign({ name, lease: asked, value }: v3electionpb.CampaignRequest, caller: Caller): Promise<Reply> {
    const { client, places } = this.#options;
    const lease = asked === 0n ? await client.grant(caller) : asked;
    const queue = queueOf(name);
    const key: LeasedKey = { key: queueKey(queue, lease), value: Uint8Array.from(value), lease };
    const created = await client.createKey(key, caller);
    const { header, createRevision } = created;
    const lost = refusedAs('notLeader');
    await this.#changeValue(key, created, lost, caller);
    const isNew = created.before === undefined;
    await places.untilOldest({ queue, key: key.key, createRevision, isNew, lost, caller });
    const leader = { name, key: key.key, rev: createRevision, lease };
    return replyOfBytes(encodeFramed(v3electionpb.CampaignResponseSchema, { header, leader }));
  }

  /** The key of an earlier campaign with this lease gets the new value. */
  async #changeValue(
    key: LeasedKey,
    { createRevision, before }: Created,
    lost: GrpcStatus,
    caller: Caller,
  ): Promise<void> {
    if (before === undefined || Buffer.compare(before.value, key.value) === 0) return;
    const { client, places } = this.#options;
    try {
      if ((await client.putCreated(key, createRevision, caller)) === undefined) throw lost;
    } catch (error) {
      if (error !== lost) await places.release({ key: key.key, createRevision }, caller);
      throw error;
    }
  }
}
