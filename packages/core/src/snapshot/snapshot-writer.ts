import { AuthState } from '../auth/auth-state.ts';
import type { Lease } from '../lease/lease-types.ts';
import type { KeyEntry } from '../mvcc/key-entry.ts';
import { isTombstone } from '../mvcc/key-entry.ts';
import type { KeyValue } from '../mvcc/kv-types.ts';
import type { KeyValueStore } from '../mvcc/key-value-store.ts';
import type { ClusterState } from '../state-machine/cluster-state.ts';
import type { State } from '../state-machine/state.ts';
import { BlockWriter } from './block-writer.ts';
import { writeCluster, writeEnd, writeLease, writeVersion } from './records.ts';
import type { ClusterRecord } from './records.ts';
import {
  baseBlock,
  clusterBlock,
  endBlock,
  formatVersion,
  formatWithAuth,
  formatWithLimits,
  formatWithoutLimits,
  historyBlock,
  leaseBlock,
} from './snapshot-format.ts';
import type { BlockKind } from './snapshot-format.ts';

/** Keys scanned in one step; most of them may have nothing to write. */
const maxKeysPerStep = 2000;

const nothing = new Uint8Array(0);

/**
 * Writes the state at the moment the writer is made, regardless of changes between the steps. A step is short (a block
 * or less), so that the event loop can run between steps. It yields a chunk of at most 64 KiB, or an empty one when the
 * step found nothing to write. Versions that are compacted meanwhile are not freed until the writer is done: a caller
 * that stops early must call `return`, as `for of` does. Versions compacted before the start are freed and are not in
 * the snapshot, so that an endless sequence of overlapping snapshots does not stop garbage collection.
 */
export class SnapshotWriter implements IterableIterator<Uint8Array> {
  readonly #store: KeyValueStore;
  readonly #leases: () => IterableIterator<Lease>;
  readonly #cluster: ClusterRecord;
  readonly #oldest: number;
  readonly #currentHash: number;
  readonly #unpin: () => void;
  readonly #blocks = new BlockWriter();
  readonly #steps: Generator<Uint8Array, undefined>;
  #finished = false;
  #leaseCount = 0;
  #baseKeys = 0;
  #events = 0;

  /** `withSecret`: includes the shared secret of the servers, so clients must not read such a snapshot. */
  constructor(state: State, { withSecret }: { readonly withSecret: boolean }) {
    const { store, leases } = state;
    this.#store = store;
    this.#leases = leases.freeze();
    this.#oldest = store.log.firstHeldRevision;
    this.#cluster = {
      cluster: withSecret ? { ...state.cluster } : withoutSecrets(state.cluster),
      epochEnds: leases.epochEnds.entries(),
      compactRevision: store.compactRevision,
      currentRevision: store.currentRevision,
      oldestHash: store.log.hashAt(this.#oldest),
    };
    this.#currentHash = store.log.hashAt(store.currentRevision);
    this.#unpin = store.pin(this.#oldest);
    this.#steps = this.#run();
  }

  /** The index of the last entry that is in the snapshot. */
  get appliedIndex(): number {
    return this.#cluster.cluster.appliedIndex;
  }

  /** A hash of the bytes written so far, unsigned; of the whole state once the writer is done. */
  get check(): number {
    return this.#blocks.check;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<Uint8Array, undefined> {
    if (this.#finished) return { done: true, value: undefined };
    const step = this.#steps.next();
    if (step.done === true) this.#finish();
    return step;
  }

  return(): IteratorResult<Uint8Array, undefined> {
    this.#finish();
    return { done: true, value: undefined };
  }

  #finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#unpin();
  }

  *#run(): Generator<Uint8Array, undefined> {
    yield this.#blocks.preamble(formatOf(this.#cluster.cluster));
    writeCluster(this.#blocks.payload, this.#cluster);
    yield* this.#blocks.flush(clusterBlock);
    yield* this.#runLeases();
    yield* this.#runBase();
    yield* this.#runHistory();
    writeEnd(this.#blocks.payload, {
      leases: this.#leaseCount,
      baseKeys: this.#baseKeys,
      events: this.#events,
      currentHash: this.#currentHash,
    });
    yield* this.#blocks.flush(endBlock);
  }

  *#runLeases(): Generator<Uint8Array, undefined> {
    for (const lease of this.#leases()) {
      writeLease(this.#blocks.payload, lease);
      this.#leaseCount++;
      if (this.#blocks.isFull) yield* this.#blocks.flush(leaseBlock);
    }
    yield* this.#flushRest(leaseBlock);
  }

  /**
   * A key that is added meanwhile has nothing to write here, nor has one that is removed: it was deleted before the
   * oldest held revision. So the scan continues after the last key, whether or not that key still exists.
   */
  *#runBase(): Generator<Uint8Array, undefined> {
    let after: string | undefined;
    for (let more = true; more;) {
      more = false;
      let left = maxKeysPerStep;
      this.#store.index.visitAfter(after, (entry) => {
        after = entry.head.key;
        this.#writeBase(entry);
        more = --left === 0 || this.#blocks.isFull;
        return !more;
      });
      if (this.#blocks.isFull) yield* this.#blocks.flush(baseBlock);
      else yield nothing;
    }
    yield* this.#flushRest(baseBlock);
  }

  #writeBase(entry: KeyEntry): void {
    const base = baseVersion(entry, this.#oldest);
    if (base === undefined) return;
    this.#blocks.payload.varint(base.modRevision);
    writeVersion(this.#blocks.payload, base);
    this.#baseKeys++;
  }

  *#runHistory(): Generator<Uint8Array, undefined> {
    const log = this.#store.log;
    const payload = this.#blocks.payload;
    for (let revision = this.#oldest; revision <= this.#cluster.currentRevision; revision++) {
      const count = log.countAt(revision);
      payload.varint(count);
      for (let i = 0; i < count; i++) {
        writeVersion(payload, log.changeAt(revision, i));
        this.#events++;
        if (this.#blocks.isFull) yield* this.#blocks.flush(historyBlock);
      }
      if (this.#blocks.isFull) yield* this.#blocks.flush(historyBlock);
    }
    yield* this.#flushRest(historyBlock);
  }

  *#flushRest(kind: BlockKind): Generator<Uint8Array, undefined> {
    if (this.#blocks.payload.length > 0) yield* this.#blocks.flush(kind);
  }
}

function formatOf({ auth, txnLimits, members }: ClusterState): number {
  if (members.some(({ peerUrls }) => peerUrls !== undefined)) return formatVersion;
  if (auth.revision > AuthState.initial.revision) return formatWithAuth;
  return txnLimits === undefined ? formatWithoutLimits : formatWithLimits;
}

/**
 * While authentication is enabled, only root may read a snapshot, and a cluster that is restored from it needs the
 * passwords. While it is disabled, every client may read it.
 */
function withoutSecrets(cluster: ClusterState): ClusterState {
  const auth = cluster.auth.enabled ? cluster.auth : cluster.auth.withoutPasswords();
  return { ...cluster, secret: '', auth };
}

/**
 * The version that a key had before the oldest held revision and still has at it, which the history does not contain. A
 * store that was never compacted has none, since its history is complete.
 */
function baseVersion(entry: KeyEntry, oldest: number): KeyValue | undefined {
  const version = entry.versionAt(oldest);
  if (version === undefined || version.modRevision === oldest || isTombstone(version)) return undefined;
  return version;
}
