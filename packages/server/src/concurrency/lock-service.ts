import { v3lockpb } from '@tenure/protocol';
import { decodeRequest, encodeFramed } from '@tenure/codec';
import type { Caller } from '../api/sliced-work.ts';
import { type Reply, replyOfBytes } from '@tenure/grpc-server';
import type { CallLimit } from './call-limit.ts';
import type { LocalClient } from './local-client.ts';
import { queueKey, queueOf } from './queue-key.ts';
import type { QueuePlaces } from './queue-place.ts';
import { refusedAs, withoutCodes } from './refused-as.ts';

export interface LockServiceOptions {
  readonly client: LocalClient;
  readonly places: QueuePlaces;
  /** On the calls that may wait. */
  readonly limit: CallLimit;
}

const noValue = new Uint8Array();

/**
 * Etcd's Lock service. A lock is a queue of keys below its name, each with a lease: the oldest key holds, and is
 * deleted by Unlock, by the end of its lease, or by anyone else. So it excludes the clients that take the same lock
 * with transactions and watches of their own, as etcd's libraries do.
 */
export class LockService {
  readonly #options: LockServiceOptions;

  constructor(options: LockServiceOptions) {
    this.#options = options;
  }

  async lock(request: Buffer, caller: Caller): Promise<Reply> {
    const { name, lease } = decodeRequest(v3lockpb.LockRequestSchema, request);
    return this.#options.limit.run(() => withoutCodes(this.#lock(name, lease, caller)));
  }

  async unlock(request: Buffer, caller: Caller): Promise<Reply> {
    const { key } = decodeRequest(v3lockpb.UnlockRequestSchema, request);
    const header = await withoutCodes(this.#options.client.delete(Uint8Array.from(key), caller));
    return encodeFramed(v3lockpb.UnlockResponseSchema, { header });
  }

  async #lock(name: Uint8Array, asked: bigint, caller: Caller): Promise<Reply> {
    const { client, places } = this.#options;
    const lease = asked === 0n ? await client.grant(caller) : asked;
    const queue = queueOf(name);
    const key = queueKey(queue, lease);
    // In etcd the transaction reads the oldest key too, and is refused to those who may not.
    await client.requireRead(queue, caller);
    const { header, createRevision, before } = await client.createKey({ key, value: noValue, lease }, caller);
    const lost = refusedAs('sessionExpired');
    const isNew = before === undefined;
    const foundOldest = await places.untilOldest({ queue, key, createRevision, isNew, lost, caller });
    return replyOfBytes(encodeFramed(v3lockpb.LockResponseSchema, { header: foundOldest ?? header, key }));
  }
}
