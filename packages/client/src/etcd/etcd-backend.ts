import { queuePosition } from '../backend/queue-position.ts';
import type {
  BackendLimits,
  Claim,
  EnterOptions,
  Entered,
  Entry,
  EntryKey,
  LeaseBackend,
  QueueWatch,
  Renewal,
} from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Random } from '../random/random.ts';
import { systemRandom } from '../random/system-random.ts';
import type { Signal } from '../time/signal.ts';
import { sleep } from '../time/sleep.ts';
import type { Clock } from '../time/clock.ts';
import { systemClock } from '../time/system-clock.ts';
import { backendErrorOf } from './backend-error-of.ts';
import { EtcdClient } from './client/etcd-client.ts';
import type { KeyValue } from './client/key-value.ts';
import type { PutOptions } from './client/kv-options.ts';
import type { GetResult } from './client/kv-results.ts';
import { compare } from './client/compare.ts';
import type { Compare } from './client/compare.ts';
import { operation } from './client/operation.ts';
import type { OperationResult } from './client/txn-builder.ts';
import type { EtcdOptions } from './connection/etcd-options.ts';
import { EntryKeys } from './entry-keys.ts';
import { encodeEntry, entryOf } from './entry-value.ts';
import { IdleLeases } from './idle-leases.ts';

export interface EtcdBackendOptions {
  /** An existing client, which stays open, or the options of a new one, which is closed with the backend. */
  readonly client: EtcdClient | EtcdOptions;
  /** The prefix of all keys; `tenure/` by default. */
  readonly prefix?: string;
}

/** Below etcd's default limit of 128 operations in a transaction. */
const keysPerRead = 100;
/** An attempt fails only because of a concurrent write. */
const maxAttempts = 20;

/**
 * Leases in etcd, or in Tenure's server. An entry is a key with a lease of its own. Its sequence number is the revision
 * that created the key, so the server can check it in any transaction.
 */
export function etcdBackend(options: EtcdBackendOptions): EtcdLeaseBackend {
  return new EtcdBackend(options, systemClock, systemRandom);
}

export interface EtcdLeaseBackend extends LeaseBackend {
  /**
   * A condition for a transaction in the same etcd, which is true as long as the entry of the hold exists:
   * `kv.txn().if(backend.guard(hold)).do(…)`. A process that was paused beyond its TTL writes nothing with it.
   */
  guard(hold: { readonly entry: EntryKey }): Compare;
}

/** Its parts come as arguments, so that a simulation can run it. Programs call `etcdBackend`. */
export class EtcdBackend implements EtcdLeaseBackend {
  readonly kind = 'etcd';
  readonly limits: BackendLimits = {
    minTtlMs: 1,
    maxTtlMs: 9_000_000_000_000,
    maxNameBytes: 512,
    maxDataBytes: 64 * 1024,
  };
  /** Changes come by watch. Polling is for a client whose server is partitioned and has not noticed. */
  readonly pollIntervalMs = 15_000;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #client: EtcdClient;
  readonly #ownsClient: boolean;
  readonly #keys: EntryKeys;
  /** The leases of entries made by this backend, by entry id. For other entries it is read from the key. */
  readonly #leases = new Map<string, { readonly lease: bigint; readonly ttlMs: number }>();
  readonly #idle: IdleLeases;
  readonly #watches = new Set<AbortController>();
  #isClosed = false;

  constructor({ client, prefix }: EtcdBackendOptions, clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
    this.#ownsClient = !(client instanceof EtcdClient);
    this.#client = client instanceof EtcdClient ? client : new EtcdClient(client, clock);
    this.#idle = new IdleLeases(this.#client.lease, clock);
    this.#keys = new EntryKeys(prefix ?? 'tenure/');
  }

  enter(claim: Claim, { onlyIfHolds, signal }: EnterOptions): Promise<Entered> {
    return this.#calling(signal, async () => {
      const idle = await this.#idleLease(claim.ttlMs, signal);
      // The client chooses the id, so that it can revoke the lease if the answer is lost.
      const lease = idle ?? this.#newLeaseId();
      try {
        if (idle === undefined) await this.#client.lease.grant({ ttlMs: claim.ttlMs, id: lease, signal });
        const entered = await (onlyIfHolds
          ? this.#enterIfHolds(claim, lease, signal)
          : this.#attempt(claim, lease, [], signal));
        if (entered.sequence === undefined) this.#idle.keep(lease, claim.ttlMs);
        return entered;
      } catch (error) {
        // The answer was invalid but the entry exists, and no caller would remove it later.
        if (error instanceof BackendError && error.backendCode === 'misconfigured') {
          this.#leases.delete(claim.id);
          await this.#client.lease.revoke(lease, signal);
        } else {
          this.#forget(claim.id, lease);
        }
        throw error;
      }
    });
  }

  list(name: string, signal: Signal): Promise<readonly Entry[]> {
    return this.#calling(signal, async () => {
      const queue = this.#keys.queuePrefix(name);
      return this.#entries(name, await this.#client.kv.get({ prefix: queue }, { ...byCreation, signal }));
    });
  }

  renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    return this.#calling(signal, async () => {
      const leases = await Promise.all(renewals.map((renewal) => this.#keepAlive(renewal, signal)));
      // Only the key shows whether the entry exists, and whether it is attached to the renewed lease.
      const kvs = await this.#readKeys(renewals, signal);
      return Promise.all(
        renewals.map(async (renewal, at) => {
          const kv = kvs[at];
          if (kv?.createRevision !== renewal.sequence) {
            this.#leases.delete(renewal.id);
            return false;
          }
          return kv.lease === leases[at] || this.#moveToNewLease(renewal, signal);
        }),
      );
    });
  }

  leave(entry: EntryKey, signal: Signal): Promise<boolean> {
    return this.#calling(signal, () => this.#leave(entry, signal));
  }

  update(entry: EntryKey, data: string, signal: Signal): Promise<boolean> {
    return this.#calling(signal, async () => {
      return (await this.#rewrite(entry, { data }, { keepLease: true }, signal)) !== undefined;
    });
  }

  watch(name: string, onChange: () => void): QueueWatch {
    const stop = new AbortController();
    this.#watches.add(stop);
    void this.#follow(name, onChange, stop);
    return {
      close: () => {
        stop.abort();
        this.#watches.delete(stop);
      },
    };
  }

  guard({ entry }: { readonly entry: EntryKey }): Compare {
    return compare.createRevision(this.#keys.entry(entry), '=', entry.sequence);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const watch of this.#watches) watch.abort();
    this.#watches.clear();
    this.#idle.close();
    if (this.#ownsClient) this.#client.close();
  }

  #tooBusy(name: string): BackendError {
    return new BackendError(this.kind, 'unavailable', `the queue of ${name} changes faster than it can be written`);
  }

  async #calling<Value>(signal: Signal, work: () => Promise<Value>): Promise<Value> {
    signal.throwIfAborted();
    if (this.#isClosed) throw new BackendError(this.kind, 'closed', 'the backend has been closed');
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw backendErrorOf(error);
    }
  }

  /** The entries ahead only become fewer, so it still holds if no entry was added since the read. */
  async #enterIfHolds(claim: Claim, lease: bigint, signal: Signal): Promise<Entered> {
    const queue = { prefix: this.#keys.queuePrefix(claim.name) };
    let condition = compare.isAbsent(queue);
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const entered = await this.#attempt(claim, lease, [condition], signal);
      if (entered.sequence !== undefined || !wouldHold(entered.entries, claim)) return entered;
      condition = compare.createRevision(queue, '<', entered.revision + 1n);
    }
    throw this.#tooBusy(claim.name);
  }

  async #attempt(
    claim: Claim,
    lease: bigint,
    conditions: readonly Compare[],
    signal: Signal,
  ): Promise<Entered & { readonly revision: bigint }> {
    const list = operation.get({ prefix: this.#keys.queuePrefix(claim.name) }, byCreation);
    const { succeeded, revision, results } = await this.#client.kv
      .txn()
      .if(...conditions)
      .do(operation.put(this.#keys.entry(claim), encodeEntry(claim), { lease }), list)
      .else(list)
      .commit({ signal });
    const entries = this.#entries(claim.name, listIn(results));
    if (!succeeded) return { sequence: undefined, entries, revision };
    this.#leases.set(claim.id, { lease, ttlMs: claim.ttlMs });
    return { sequence: revision, entries, revision };
  }

  #entries(name: string, { kvs }: GetResult): readonly Entry[] {
    const queue = this.#keys.queuePrefix(name);
    return kvs.map((kv) => entryOf(name, queue, kv));
  }

  async #leave(entry: EntryKey, signal: Signal): Promise<boolean> {
    const key = this.#keys.entry(entry);
    const { succeeded } = await this.#client.kv
      .txn()
      .if(isEntry(key, entry.sequence))
      .do(operation.delete(key))
      .commit({ signal });
    const known = this.#leases.get(entry.id);
    // Whether it was found or not, the entry of this id is gone.
    this.#leases.delete(entry.id);
    if (succeeded && known !== undefined) this.#idle.keep(known.lease, known.ttlMs);
    return succeeded;
  }

  async #readKeys(entries: readonly EntryKey[], signal: Signal): Promise<readonly (KeyValue | undefined)[]> {
    const slices: EntryKey[][] = [];
    for (let at = 0; at < entries.length; at += keysPerRead) slices.push(entries.slice(at, at + keysPerRead));
    const answers = slices.map(async (slice) => {
      const gets = slice.map((entry) => operation.get(this.#keys.entry(entry), { keysOnly: true }));
      const { results } = await this.#client.kv
        .txn()
        .do(...gets)
        .commit({ signal });
      return results.map((result) => (result.kind === 'get' ? result.kvs[0] : undefined));
    });
    return (await Promise.all(answers)).flat();
  }

  /** The lease that was renewed; undefined if it has another TTL, is unknown here, or is gone. */
  async #keepAlive(renewal: Renewal, signal: Signal): Promise<bigint | undefined> {
    const known = this.#leases.get(renewal.id);
    if (known === undefined || known.ttlMs !== renewal.ttlMs) return undefined;
    return (await this.#client.lease.keepAlive(known.lease, signal)) > 0 ? known.lease : undefined;
  }

  /** A new TTL needs a new lease, because etcd's leases keep the TTL of their grant. Whether the entry was there. */
  async #moveToNewLease(renewal: Renewal, signal: Signal): Promise<boolean> {
    const lease = this.#newLeaseId();
    await this.#client.lease.grant({ ttlMs: renewal.ttlMs, id: lease, signal });
    // A concurrent `leave` must not put the old lease among the idle ones, because it is revoked below.
    this.#leases.delete(renewal.id);
    const before = await this.#rewrite(renewal, { ttlMs: renewal.ttlMs }, { lease }, signal);
    if (before !== undefined) this.#leases.set(renewal.id, { lease, ttlMs: renewal.ttlMs });
    // The key is no longer attached to its old lease, so revoking that deletes no key.
    this.#idle.revoke(before?.lease ?? lease);
    return before !== undefined;
  }

  /** Changes an entry's value in place. Returns the key as it was before, or undefined if the entry does not exist. */
  async #rewrite(
    entry: EntryKey,
    change: Partial<Pick<Entry, 'ttlMs' | 'data'>>,
    options: PutOptions,
    signal: Signal,
  ): Promise<KeyValue | undefined> {
    const key = this.#keys.entry(entry);
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const kv = await this.#client.kv.getOne(key, { signal });
      if (kv?.createRevision !== entry.sequence) return undefined;
      const value = encodeEntry({ ...entryOf(entry.name, this.#keys.queuePrefix(entry.name), kv), ...change });
      const { succeeded } = await this.#client.kv
        .txn()
        .if(compare.modRevision(key, '=', kv.modRevision))
        .do(operation.put(key, value, options))
        .commit({ signal });
      if (succeeded) return kv;
    }
    throw this.#tooBusy(entry.name);
  }

  /** 63 bits, since etcd's ids are signed; 0 would let the server choose. */
  #newLeaseId(): bigint {
    return BigInt.asUintN(63, this.#random.uint64()) | 1n;
  }

  #forget(id: string, lease: bigint): void {
    this.#leases.delete(id);
    this.#idle.revoke(lease);
  }

  /** An idle lease, renewed now, so that it lives as long as a new one. */
  async #idleLease(ttlMs: number, signal: Signal): Promise<bigint | undefined> {
    const lease = this.#idle.take(ttlMs);
    if (lease === undefined) return undefined;
    try {
      return (await this.#client.lease.keepAlive(lease, signal)) > 0 ? lease : undefined;
    } catch {
      // A broken stream says nothing about the server. The grant that follows shows whether the server is reachable.
      signal.throwIfAborted();
      return undefined;
    }
  }

  async #follow(name: string, onChange: () => void, stop: AbortController): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        const range = { prefix: this.#keys.queuePrefix(name) };
        for await (const _ of this.#client.watch(range, { signal: stop.signal, unref: true })) {
          if (!stop.signal.aborted) onChange();
        }
        return;
      } catch (error) {
        // An extra hint is harmless, and the read that follows reports the error.
        onChange();
        if (backendErrorOf(error).backendCode === 'closed') return;
        await sleep(this.#clock, watchPauseMs, stop.signal);
      }
    }
  }
}

const byCreation = { sortBy: 'createRevision', order: 'ascending' } as const;
const watchPauseMs = 1000;

function isEntry(key: string, sequence: bigint): Compare {
  return sequence === 0n ? compare.exists(key) : compare.createRevision(key, '=', sequence);
}

function wouldHold(entries: readonly Entry[], claim: Claim): boolean {
  const last = entries.reduce((highest, { sequence }) => (sequence > highest ? sequence : highest), 0n);
  return queuePosition(entries, { ...claim, sequence: last + 1n }).holds;
}

function listIn(results: readonly OperationResult[]): GetResult {
  const list = results.find((result) => result.kind === 'get');
  if (list === undefined) throw new Error('a transaction was answered without the list that it asked for');
  return list;
}
