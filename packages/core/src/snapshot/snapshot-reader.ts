import { EpochEnds } from '../lease/epoch-ends.ts';
import { LeaseCollection } from '../lease/lease-collection.ts';
import type { KeyValueStore } from '../mvcc/key-value-store.ts';
import { StoreBuilder } from '../mvcc/store-builder.ts';
import type { State } from '../state-machine/state.ts';
import { StateMachine } from '../state-machine/state-machine.ts';
import { BlockReader } from './block-reader.ts';
import type { ByteReader } from './byte-reader.ts';
import { becomeNewCluster } from './new-cluster.ts';
import type { NewCluster } from './new-cluster.ts';
import { readCluster, readEnd, readLease, readVersion } from './records.ts';
import type { ClusterRecord } from './records.ts';
import { SnapshotError } from './snapshot-error.ts';
import { baseBlock, clusterBlock, endBlock, historyBlock, leaseBlock } from './snapshot-format.ts';

/** The part of the state that has been read. */
interface Restored {
  readonly record: ClusterRecord;
  readonly leases: LeaseCollection;
  readonly builder: StoreBuilder;
}

/**
 * Builds a state machine from a snapshot, chunk by chunk. `push` throws SnapshotError when the bytes are invalid; the
 * reader must not be used after that.
 */
export class SnapshotReader {
  readonly #blocks = new BlockReader((kind, payload) => this.#readBlock(kind, payload));
  #restored: Restored | undefined;
  #store: KeyValueStore | undefined;
  #lastKind = 0;
  #revisionEvents = 0;
  #revisionOpen = false;
  #leaseCount = 0;
  #baseKeys = 0;
  #events = 0;
  #lastKey = '';
  #lastLease: bigint | undefined;

  /** The caller may reuse the chunk when this returns. */
  push(chunk: Uint8Array): void {
    this.#blocks.push(chunk);
  }

  /** The state from the snapshot, or of a new cluster. Throws SnapshotError unless the snapshot was complete. */
  finish(cluster?: NewCluster): StateMachine {
    const restored = this.#restored;
    const store = this.#store;
    if (restored === undefined || store === undefined || !this.#blocks.betweenBlocks) {
      throw new SnapshotError('damaged', `the snapshot is truncated: it ends at byte ${this.#blocks.offset}`);
    }
    const state: State = { cluster: restored.record.cluster, leases: restored.leases, store };
    if (cluster !== undefined) becomeNewCluster(state, cluster);
    return new StateMachine(state);
  }

  #readBlock(kind: number, payload: ByteReader): void {
    if (kind < this.#lastKind || this.#lastKind === endBlock || (kind === clusterBlock) !== (this.#lastKind === 0)) {
      throw damage('its blocks are in the wrong order');
    }
    this.#lastKind = kind;
    if (kind === clusterBlock) this.#readCluster(payload);
    else this.#readRecords(kind, payload, this.#restored!);
    if (!payload.atEnd) throw damage('a block has bytes after its records');
  }

  #readCluster(payload: ByteReader): void {
    const record = readCluster(payload);
    if (record.currentRevision < Math.max(record.compactRevision, 1)) throw damage('its revisions go backwards');
    const leases = new LeaseCollection(new EpochEnds(record.cluster.epoch, record.epochEnds));
    this.#restored = { record, leases, builder: new StoreBuilder(record.compactRevision) };
  }

  #readRecords(kind: number, payload: ByteReader, restored: Restored): void {
    if (kind === endBlock) {
      this.#readEnd(payload, restored);
      return;
    }
    while (!payload.atEnd) {
      if (kind === leaseBlock) this.#readLease(payload, restored);
      else if (kind === baseBlock) this.#readBase(payload, restored);
      else if (kind === historyBlock) this.#readHistory(payload, restored);
      else throw damage(`it has a block of the unknown kind ${kind}`);
    }
  }

  #readLease(payload: ByteReader, { leases }: Restored): void {
    const lease = readLease(payload);
    if (this.#lastLease !== undefined && lease.id <= this.#lastLease) throw damage('its leases are not in order');
    this.#lastLease = lease.id;
    leases.add(lease);
    this.#leaseCount++;
  }

  #readBase(payload: ByteReader, { builder }: Restored): void {
    const modRevision = payload.varint();
    const version = readVersion(payload, modRevision);
    if (modRevision >= builder.log.firstHeldRevision || version.version === 0)
      throw damage('a key in it is out of place');
    if (this.#baseKeys > 0 && version.key <= this.#lastKey) throw damage('its keys are not in order');
    this.#lastKey = version.key;
    builder.addBase(version);
    this.#baseKeys++;
  }

  #readHistory(payload: ByteReader, { record, builder }: Restored): void {
    const log = builder.log;
    const revision = log.currentRevision + 1;
    if (!this.#revisionOpen) {
      if (revision > record.currentRevision) throw damage('its history goes beyond its newest revision');
      this.#revisionEvents = payload.varint();
      this.#revisionOpen = true;
      if (this.#revisionEvents === 0 && revision > log.firstHeldRevision) throw damage('a revision in it has no event');
    }
    for (; this.#revisionEvents > 0 && !payload.atEnd; this.#revisionEvents--) {
      builder.addEvent(readVersion(payload, revision));
      this.#events++;
    }
    if (this.#revisionEvents > 0) return;
    this.#revisionOpen = false;
    if (revision === log.firstHeldRevision) log.sealOldest(record.oldestHash);
    else log.seal();
  }

  #readEnd(payload: ByteReader, { record, leases, builder }: Restored): void {
    const log = builder.log;
    const end = readEnd(payload);
    if (end.leases !== this.#leaseCount || end.baseKeys !== this.#baseKeys || end.events !== this.#events) {
      throw damage('it does not have as many records as it says');
    }
    if (log.currentRevision !== record.currentRevision) throw damage('its history stops before its newest revision');
    if (log.hashAt(log.currentRevision) !== end.currentHash) throw damage('its history does not match its hash');
    this.#store = builder.build(leases);
    if (this.#store === undefined) throw damage('a key in it has a lease that does not exist');
  }
}

function damage(reason: string): SnapshotError {
  return new SnapshotError('damaged', reason);
}
