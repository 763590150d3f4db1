import type { History } from './history.ts';
import { KeyHistory } from './key-history.ts';
import { KeyEntry, isTombstone, pairBefore, tombstone } from './key-entry.ts';
import { KeyIndex } from './key-index.ts';
import type { DeleteRangeRequest, DeleteRangeResult, KeyValue, PutRequest, PutResult } from './kv-types.ts';
import type { LeaseLinks } from './lease-links.ts';
import { RevisionLog } from './revision-log.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { versionBytes } from './version-bytes.ts';
import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';

export interface KvHash {
  /** Unsigned, 32 bits. */
  readonly hash: number;
  readonly compactRevision: number;
  readonly hashRevision: number;
}

/** The number of hashes that etcd remembers. */
const maxCompactionHashes = 10;

/** The contents of a store that is not empty. */
export interface StoreParts {
  readonly index: KeyIndex;
  readonly log: RevisionLog;
  /** As the properties of the store. */
  readonly heldBytes: number;
  readonly liveBytes: number;
  readonly liveCount: number;
}

/**
 * The keys, with all their versions since the last compaction. Writes are made one by one and become one revision with
 * `commit`; `writeRevision` is the revision that they will have. No writing method can fail: the caller checks every
 * refusal before the first write.
 */
export class KeyValueStore {
  readonly index: KeyIndex;
  readonly history: History;
  readonly #log: RevisionLog;
  readonly #leases: LeaseLinks;
  readonly #collector: GarbageCollector;
  #heldBytes: number;
  #liveBytes: number;
  #liveCount: number;
  readonly #compactionHashes: KvHash[] = [];

  constructor(leases: LeaseLinks, parts = emptyParts()) {
    this.#leases = leases;
    this.index = parts.index;
    this.#log = parts.log;
    this.#heldBytes = parts.heldBytes;
    this.#liveBytes = parts.liveBytes;
    this.#liveCount = parts.liveCount;
    this.history = new KeyHistory(parts.log, parts.index);
    this.#collector = new GarbageCollector(parts.index, parts.log);
  }

  get log(): RevisionLog {
    return this.#log;
  }

  get currentRevision(): number {
    return this.#log.currentRevision;
  }

  get compactRevision(): number {
    return this.#log.compactRevision;
  }

  /** The revision that reads see: the current one, or the uncommitted one once it holds a change. */
  get readRevision(): number {
    return this.#log.pending === 0 ? this.#log.currentRevision : this.#log.currentRevision + 1;
  }

  get writeRevision(): number {
    return this.#log.currentRevision + 1;
  }

  /** An estimate of the memory of all versions, including compacted ones that are not collected yet. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** The share of the newest version of each key: the size after a compaction of the whole history. */
  get liveBytes(): number {
    return this.#liveBytes;
  }

  /** See GarbageCollector.lastDeletionsBytes. */
  get lastDeletionsBytes(): number {
    return this.#collector.lastDeletionsBytes;
  }

  /** The number of existing keys. */
  get liveCount(): number {
    return this.#liveCount;
  }

  live(key: string): KeyValue | undefined {
    const head = this.index.get(key)?.head;
    return head === undefined || isTombstone(head) ? undefined : head;
  }

  /** The caller has checked the lease and the previous value. */
  put(request: PutRequest): PutResult {
    const entry = this.index.get(request.key);
    const head = entry?.head;
    const previous = head === undefined || isTombstone(head) ? undefined : head;
    const revision = this.writeRevision;
    const lease = request.ignoreLease ? (previous?.lease ?? 0n) : request.lease;
    const version: KeyValue = {
      // All versions share the first key string, so that each version costs only its value.
      key: head === undefined ? request.key : head.key,
      value: request.ignoreValue ? (previous?.value ?? '') : request.value,
      createRevision: previous === undefined ? revision : previous.createRevision,
      modRevision: revision,
      version: previous === undefined ? 1 : previous.version + 1,
      lease,
    };
    const written = this.#write(entry, version, previous);
    const oldLease = previous === undefined ? 0n : previous.lease;
    if (oldLease !== lease) {
      if (oldLease !== 0n) this.#leases.detach(oldLease, written);
      if (lease !== 0n) this.#leases.attach(lease, written);
    }
    return { prevKv: request.prevKv ? previous : undefined };
  }

  /** When no client waits for the response, it has no previous values. */
  deleteRange(request: DeleteRangeRequest, isAwaited = true): DeleteRangeResult {
    const doomed: KeyEntry[] = [];
    this.index.visitRange(request.key, request.rangeEnd, (entry) => {
      if (!isTombstone(entry.head)) doomed.push(entry);
      return true;
    });
    const prevKvs = request.prevKv && isAwaited ? doomed.map((entry) => entry.head) : [];
    for (const entry of doomed) {
      const lease = entry.head.lease;
      this.deleteEntry(entry);
      if (lease !== 0n) this.#leases.detach(lease, entry);
    }
    return { deleted: doomed.length, prevKvs };
  }

  /** Deletes one key without detaching it from its lease: for the end of the lease, which removes all its keys. */
  deleteEntry(entry: KeyEntry): void {
    const previous = entry.head;
    this.#write(entry, tombstone(previous.key, this.writeRevision), previous);
  }

  /** Commits the uncommitted revision if it holds a change. Returns the current revision. */
  commit(): number {
    return this.#log.seal();
  }

  /** etcd's rules: a revision at or below the last compaction is Compacted, one above the current is FutureRevision. */
  compact(revision: number): CoreError | undefined {
    if (revision <= this.#log.compactRevision) return coreError('Compacted');
    if (revision > this.#log.currentRevision) return coreError('FutureRevision');
    // A compaction at revision 0 is allowed, and revision 0 has no hash.
    if (revision >= this.#log.firstHeldRevision) this.#rememberHash(revision);
    this.#log.compact(revision);
    return undefined;
  }

  /** Hash before the compaction at this revision. */
  #rememberHash(revision: number): void {
    const hash = this.#log.hashAt(revision);
    this.#compactionHashes.push({ hash, compactRevision: this.compactRevision, hashRevision: revision });
    if (this.#compactionHashes.length > maxCompactionHashes) this.#compactionHashes.shift();
  }

  /**
   * 0 is the current revision, and a negative one has nothing to hash. As in etcd, the hash of a compact revision is
   * the one from before that compaction; the last few are remembered, but not over a restart.
   */
  hashKv(revision: number): KvHash | CoreError {
    const remembered = this.#compactionHashes.find(({ hashRevision }) => hashRevision === revision);
    if (remembered !== undefined) return remembered;
    const { compactRevision } = this;
    if (revision < 0) return { hash: 0, compactRevision, hashRevision: revision };
    const hashRevision = revision === 0 ? this.currentRevision : revision;
    if (hashRevision < compactRevision) return coreError('Compacted');
    if (hashRevision > this.currentRevision) return coreError('FutureRevision');
    return { hash: this.#log.hashAt(hashRevision), compactRevision, hashRevision };
  }

  /** See GarbageCollector.run. */
  collectGarbage(maxSteps: number): boolean {
    const more = this.#collector.run(maxSteps);
    this.#heldBytes -= this.#collector.takeFreedBytes();
    return more;
  }

  get isGarbageCollected(): boolean {
    return this.#collector.isDone;
  }

  get isGarbageCollectionPaused(): boolean {
    return this.#collector.isPaused;
  }

  /** See GarbageCollector.pin. */
  pin(revision: number): () => void {
    return this.#collector.pin(revision);
  }

  #write(found: KeyEntry | undefined, version: KeyValue, previous: KeyValue | undefined): KeyEntry {
    const bytes = versionBytes(version);
    this.#heldBytes += bytes;
    if (!isTombstone(version)) {
      this.#liveBytes += bytes;
      this.#liveCount += 1;
    }
    if (previous !== undefined) {
      this.#liveBytes -= versionBytes(previous);
      this.#liveCount -= 1;
    }
    this.#log.record(version, found === undefined ? undefined : pairBefore(found, previous, version.modRevision));
    if (found !== undefined) {
      found.push(version);
      return found;
    }
    const entry = new KeyEntry(version);
    this.index.add(version.key, entry);
    return entry;
  }
}

function emptyParts(): StoreParts {
  return { index: new KeyIndex(), log: RevisionLog.empty(), heldBytes: 0, liveBytes: 0, liveCount: 0 };
}
