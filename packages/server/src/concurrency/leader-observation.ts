import { type etcdserverpb, mvccpb } from '@tenure/protocol';
import type { Caller } from '../api/sliced-work.ts';
import type { LocalClient } from './local-client.ts';
import { refusalIn } from './local-watch.ts';
import type { KeyPrefix } from './queue-key.ts';

/** A leader as it was at the revision of the header. */
export interface ObservedLeader {
  readonly header: etcdserverpb.ResponseHeader;
  readonly kv: mvccpb.KeyValue;
}

type Send = (leader: ObservedLeader) => Promise<void>;

const { DELETE } = mvccpb.Event_EventType;

/**
 * The leaders of one election as one observer sees them: the oldest key, each of its values, and when it is deleted the
 * key that is then the oldest. Not every leader is seen, but always the last. After a compaction it continues with the
 * leader of that moment.
 */
export class LeaderObservation {
  readonly #client: LocalClient;
  readonly #queue: KeyPrefix;
  readonly #caller: Caller;
  /** The revision of the last change that was sent. */
  #sentRevision = 0n;

  constructor(client: LocalClient, queue: KeyPrefix, caller: Caller) {
    this.#client = client;
    this.#queue = queue;
    this.#caller = caller;
  }

  /** Until the call is over; rejects then, as when the caller may not read the keys any more. */
  async run(send: Send): Promise<never> {
    let caller = this.#caller;
    for (;;) {
      const { kv, header } = await this.#client.oldest(this.#queue, caller);
      caller = this.#client.asOfNow(this.#caller);
      const leader = kv === undefined ? await this.#first(header.revision) : { kv, header };
      if (leader === undefined) continue;
      if (leader.kv.modRevision > this.#sentRevision) await this.#send(leader, send);
      await this.#follow(leader, send);
    }
  }

  /** The first key of an empty queue; undefined when the history was compacted meanwhile. */
  async #first(revision: bigint): Promise<ObservedLeader | undefined> {
    const watch = this.#client.watch(this.#client.asOfNow(this.#caller));
    try {
      await watch.create({ ...this.#queue, startRevision: revision + 1n });
      for (;;) {
        const response = await watch.next();
        if (response.compactRevision > 0n) return undefined;
        if (response.canceled) throw refusalIn(response);
        const kv = response.events.find(({ type }) => type !== DELETE)?.kv;
        // Later changes in the same response are read again, from the revision of this one.
        if (kv !== undefined) return { kv, header: { ...response.header!, revision: kv.modRevision } };
      }
    } finally {
      watch.close();
    }
  }

  /** Sends each further value of a leader, until its key is deleted or the history compacted. */
  async #follow({ kv: { key }, header }: ObservedLeader, send: Send): Promise<void> {
    const watch = this.#client.watch(this.#client.asOfNow(this.#caller));
    try {
      await watch.create({ key: Uint8Array.from(key), startRevision: header.revision + 1n });
      for (;;) {
        const response = await watch.next();
        if (response.compactRevision > 0n) return;
        if (response.canceled) throw refusalIn(response);
        for (const { type, kv } of response.events) {
          if (type === DELETE || kv === undefined) return;
          await this.#send({ kv, header: response.header! }, send);
        }
      }
    } finally {
      watch.close();
    }
  }

  async #send(leader: ObservedLeader, send: Send): Promise<void> {
    this.#sentRevision = leader.kv.modRevision;
    await send(leader);
  }
}
