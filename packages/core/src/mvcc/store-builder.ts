import { loadBTree } from './btree.ts';
import { KeyEntry, isTombstone, pairBefore } from './key-entry.ts';
import { KeyIndex } from './key-index.ts';
import { KeyValueStore } from './key-value-store.ts';
import type { KeyValue } from './kv-types.ts';
import type { LeaseLinks } from './lease-links.ts';
import { RevisionLog } from './revision-log.ts';
import { versionBytes } from './version-bytes.ts';

/**
 * Builds a store from its versions: first those of its base, then the events of its oldest held revision and of all
 * later ones, in order. The keys may come in any order: they are collected in a hash table and sorted once, at the end.
 */
export class StoreBuilder {
  readonly log: RevisionLog;
  readonly #entries = new Map<string, KeyEntry>();
  #heldBytes = 0;

  constructor(compactRevision: number) {
    this.log = new RevisionLog(compactRevision);
  }

  /** A version from before the oldest held revision, which is not in the history. */
  addBase(version: KeyValue): void {
    this.#add(version);
  }

  addEvent(version: KeyValue): void {
    const entry = this.#entries.get(version.key);
    const head = entry?.head;
    const replaced = head === undefined || isTombstone(head) ? undefined : head;
    const before = entry === undefined ? undefined : pairBefore(entry, replaced, version.modRevision);
    this.log.record(this.#add(version), before);
  }

  /** Attaches the keys to their leases. Undefined when one of these leases does not exist. */
  build(leases: LeaseLinks): KeyValueStore | undefined {
    const keys = [...this.#entries.keys()].sort();
    const entries = keys.map((key) => this.#entries.get(key)!);
    let liveBytes = 0;
    let liveCount = 0;
    for (const entry of entries) {
      if (isTombstone(entry.head)) continue;
      liveBytes += versionBytes(entry.head);
      liveCount += 1;
      const lease = entry.head.lease;
      if (lease === 0n) continue;
      if (!leases.has(lease)) return undefined;
      leases.attach(lease, entry);
    }
    const index = new KeyIndex(loadBTree(keys, entries));
    return new KeyValueStore(leases, { index, log: this.log, heldBytes: this.#heldBytes, liveBytes, liveCount });
  }

  /** Returns the stored version, which shares the key string with all versions of the key. */
  #add(version: KeyValue): KeyValue {
    this.#heldBytes += versionBytes(version);
    const entry = this.#entries.get(version.key);
    if (entry === undefined) {
      this.#entries.set(version.key, new KeyEntry(version));
      return version;
    }
    const shared = { ...version, key: entry.head.key };
    entry.push(shared);
    return shared;
  }
}
