import { mvccpb, type etcdserverpb } from '@tenure/protocol';
import { latin1FromBytes } from '@tenure/codec';
import type { Caller } from '../api/sliced-work.ts';
import { statusOf } from '../api/status-of.ts';
import { GrpcCode, type GrpcStatus, callIsOver } from '@tenure/grpc-server';
import type { Found, LocalClient } from './local-client.ts';
import { type LocalWatch, refusalIn } from './local-watch.ts';
import type { KeyPrefix } from './queue-key.ts';
import { Turns } from './turns.ts';

/** A key in a queue: its revision is its place. */
export interface QueuePlace {
  readonly queue: KeyPrefix;
  readonly key: Uint8Array<ArrayBuffer>;
  readonly createRevision: bigint;
}

/** What a call waits with, and how it is told that it has lost it. */
export interface QueueWait extends QueuePlace {
  readonly lost: GrpcStatus;
  /** The call has created the key, so that no client can hold it yet. */
  readonly isNew: boolean;
  readonly caller: Caller;
}

/** How often the deletion of a key is proposed whose caller has stopped waiting; each proposal has its own timeout. */
const maxReleaseAttempts = 5;
/** Such deletions at once: thousands of callers may vanish together. */
const maxReleases = 64;

/** The calls of this server that wait with one key: more than one if a client sends its request again. */
interface SharedKey {
  calls: number;
  /**
   * Whether a client may have been told that it holds the key, by one of these calls or by an earlier one: the others
   * may not delete it then.
   */
  held: 'no' | 'perhaps' | 'yes';
}

const { DELETE } = mvccpb.Event_EventType;
const never = new AbortController().signal;

/**
 * The wait of a key until it is the oldest of its queue, which every client of etcd decides in the same way: by the
 * revisions at which the keys were created.
 *
 * Each waiter watches the next older key and its own, so the end of a holder wakes one waiter. A caller who stops
 * waiting for any reason leaves no key behind, for which the next ones would wait until its lease ends.
 */
export class QueuePlaces {
  readonly #client: LocalClient;
  readonly #shared = new Map<string, SharedKey>();
  readonly #releases = new Turns(maxReleases);

  constructor(client: LocalClient) {
    this.#client = client;
  }

  /**
   * Resolves when the key is the oldest of its queue in a state no older than this call: with the header of the read
   * that found it so after a wait, and with undefined if there was no wait. Rejects with `lost` as soon as the key is
   * gone. After any other error the key is deleted, unless another call of this server has the same one, or a client
   * may hold it already.
   */
  async untilOldest(wait: QueueWait): Promise<etcdserverpb.ResponseHeader | undefined> {
    const name = `${wait.createRevision} ${latin1FromBytes(wait.key)}`;
    const shared = this.#shared.get(name) ?? { calls: 0, held: wait.isNew ? 'no' : 'perhaps' };
    this.#shared.set(name, shared);
    shared.calls += 1;
    try {
      const header = await this.#wait(wait, shared);
      if (wait.caller.signal.aborted) throw callIsOver();
      shared.held = 'yes';
      return header;
    } catch (error) {
      if (error !== wait.lost && shared.calls === 1 && shared.held === 'no') await this.release(wait, wait.caller);
      throw error;
    } finally {
      shared.calls -= 1;
      if (shared.calls === 0) this.#shared.delete(name);
    }
  }

  /**
   * Deletes the key, if it is still that of this place, also when the call is over. Never rejects: a key that stays
   * ends with its lease.
   */
  release({ key, createRevision }: Omit<QueuePlace, 'queue'>, caller: Caller): Promise<void> {
    return this.#releases.run(async () => {
      for (let attempt = 1; attempt <= maxReleaseAttempts; attempt += 1) {
        try {
          await this.#client.deleteCreated(key, createRevision, { ...this.#client.asOfNow(caller), signal: never });
          return;
        } catch (error) {
          if (statusOf(error)?.code !== GrpcCode.unavailable) return;
        }
      }
    });
  }

  async #wait(wait: QueueWait, shared: SharedKey): Promise<etcdserverpb.ResponseHeader | undefined> {
    let hasWaited = false;
    for (let isOldest = false; !isOldest;) {
      const older = await this.#nextOlder(wait);
      if (older.kv === undefined) break;
      hasWaited = true;
      if (shared.held === 'perhaps') shared.held = 'no';
      isOldest = await this.#watchOlder(wait, older);
    }
    // This server has applied the key's creation during the call, and knows of no older key. Whether the key is still
    // there it may not know after a wait; without one, its creation is the state of which the reply tells.
    const header = await this.#requireKey(wait, { serializable: !hasWaited });
    return hasWaited ? header : undefined;
  }

  /**
   * Watches the older key, and then the next older one. Returns whether there is none; false when the history was
   * compacted before the watches had read it.
   */
  async #watchOlder(wait: QueueWait, found: Found): Promise<boolean> {
    const watch = this.#client.watch(this.#client.asOfNow(wait.caller));
    try {
      const own = await watch.create({ key: wait.key, startRevision: 0n });
      await this.#requireKey(wait, { serializable: true });
      for (let older = found; older.kv !== undefined; older = await this.#nextOlder(wait)) {
        const key = Uint8Array.from(older.kv.key);
        const id = await watch.create({ key, startRevision: older.header.revision + 1n });
        const deleted = await untilDeleted(watch);
        if (deleted === own) throw wait.lost;
        if (deleted === undefined) return false;
        watch.cancel(id);
      }
      return true;
    } finally {
      watch.close();
    }
  }

  #nextOlder({ queue, createRevision, caller }: QueueWait): Promise<Found> {
    return this.#client.nextOlder(queue, createRevision, this.#client.asOfNow(caller));
  }

  async #requireKey(wait: QueueWait, how: { readonly serializable: boolean }): Promise<etcdserverpb.ResponseHeader> {
    const { kv, header } = await this.#client.get(wait.key, how, this.#client.asOfNow(wait.caller));
    if (kv?.createRevision !== wait.createRevision) throw wait.lost;
    return header;
  }
}

/** The watch whose key was deleted; undefined when one of them was ended by a compaction. */
async function untilDeleted(watch: LocalWatch): Promise<bigint | undefined> {
  for (;;) {
    const response = await watch.next();
    if (response.compactRevision > 0n) return undefined;
    if (response.events.some(({ type }) => type === DELETE)) return response.watchId;
    // The reply to the cancellation of an earlier watch has no reason.
    if (response.canceled && response.cancelReason !== '') throw refusalIn(response);
  }
}
