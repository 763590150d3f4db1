import { AccessCheck } from '../auth/access-check.ts';
import type { AuthState } from '../auth/auth-state.ts';
import type { Requester } from '../auth/auth-types.ts';
import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';
import type { Lease } from '../lease/lease-types.ts';
import type { History } from '../mvcc/history.ts';
import { LiveHistory } from '../mvcc/live-history.ts';
import type { KeyValueStore, KvHash } from '../mvcc/key-value-store.ts';
import type { DeleteRangeRequest, RangeRequest, RangeResult, TxnRequest, TxnResult } from '../mvcc/kv-types.ts';
import { beginScan, readRange } from '../mvcc/range-scan.ts';
import type { RangeScan } from '../mvcc/range-scan.ts';
import { defaultTxnLimits } from '../mvcc/txn-limits.ts';
import type { TxnLimits } from '../mvcc/txn-limits.ts';
import { checkPlan, countTxnRows, hasInterval, isReadOnlyTxn, planTxn, runPlan } from '../mvcc/txn-plan.ts';
import { SnapshotWriter } from '../snapshot/snapshot-writer.ts';
import type { Alarm, Member } from './cluster-state.ts';
import type { Command, CommandResponse } from './command.ts';
import { dispatchCommand, assertKnown } from './dispatch.ts';
import type { Applied, Entry } from './entry.ts';
import { isAlarmed } from './cluster-commands.ts';
import { emptyState } from './state.ts';
import type { EntryContext, State } from './state.ts';

/**
 * The state of the whole service, and the only way to change it. The responses and the resulting state of `apply` are a
 * function of the entries alone, so that every server that applies the same log has the same state.
 */
export class StateMachine {
  /** Stays the same object for its holders, also when the state is replaced by a newer one. */
  readonly history: History = new LiveHistory(() => this.#state.store.history);
  #state: State;

  constructor(state: State = emptyState()) {
    this.#state = state;
  }

  /**
   * Applies the entry after the last one. A refused command changes nothing and returns its error in its response.
   * Throws, before applying any part of the entry, when the entry is not the next one or holds a command of an unknown
   * kind: then this server must stop, because it cannot follow the log.
   *
   * `isAwaited` returns whether a client of this server waits for the response to a command of the entry. It changes no
   * state: the other responses lack the parts that only a client would read, the results of a transaction's operations
   * and previous values.
   */
  apply(entry: Entry, isAwaited: (position: number) => boolean = everyone): Applied {
    const { cluster, store } = this.#state;
    if (entry.index !== cluster.appliedIndex + 1) {
      throw new Error(
        `state machine: entry ${entry.index} was passed to apply after entry ${cluster.appliedIndex}; ` +
          'entries must be applied once each, in order. Restart this server from its log.',
      );
    }
    for (const command of entry.commands) assertKnown(command, entry.index);
    cluster.appliedIndex = entry.index;
    const before = store.currentRevision;
    const context: EntryContext = { index: entry.index, leaseChanges: [], isAwaited };
    const responses = this.#isCurrent(entry) ? this.#applyCommands(entry, context) : refuseAll(entry);
    return {
      responses,
      firstRevision: before + 1,
      lastRevision: store.currentRevision,
      leaseChanges: context.leaseChanges,
    };
  }

  /**
   * Adopts the state of `newer`, which was restored from a snapshot of the same log at a later entry; `newer` must not
   * be used any more. Every getter, and the history, shows the new state from here on; a snapshot in progress continues
   * with the old one. Throws, and changes nothing, when `newer` cannot be a later state of this one: then this server
   * has applied entries that the log no longer holds.
   */
  replaceWith(newer: StateMachine): void {
    const [old, next] = [this.#state.cluster, newer.#state.cluster];
    if (next.appliedIndex <= old.appliedIndex || next.clusterId !== old.clusterId || next.epoch < old.epoch) {
      throw new Error(
        `state machine: a snapshot at entry ${next.appliedIndex} of cluster ${next.clusterId} does not follow on ` +
          `entry ${old.appliedIndex} of cluster ${old.clusterId}. Restart this server from its log.`,
      );
    }
    const { currentRevision } = this;
    const known = newer.currentRevision < currentRevision ? undefined : newer.hashKv(currentRevision);
    const own = this.hashKv(currentRevision);
    if (known === undefined || ('hash' in known && 'hash' in own && known.hash !== own.hash)) {
      throw new Error(
        `state machine: the snapshot at entry ${next.appliedIndex} has another history up to revision ` +
          `${currentRevision} than this server has applied: the log has lost entries that were served as durable. ` +
          'Restart this server to take over what the log holds now.',
      );
    }
    this.#state = newer.#state;
  }

  /** A claim of the next epoch begins that epoch, so it needs no current epoch. */
  #isCurrent(entry: Entry): boolean {
    const { cluster } = this.#state;
    const first = entry.commands[0];
    return first?.kind === 'claim' ? first.epoch === cluster.epoch + 1 : entry.epoch === cluster.epoch;
  }

  #applyCommands(entry: Entry, context: EntryContext): CommandResponse[] {
    const { cluster } = this.#state;
    cluster.clusterTimeMs = Math.max(cluster.clusterTimeMs, entry.timeMs);
    const responses: CommandResponse[] = [];
    for (let position = 0; position < entry.commands.length; position++) {
      responses.push(dispatchCommand(this.#state, context, entry.commands[position]!, position));
    }
    return responses;
  }

  get currentRevision(): number {
    return this.#state.store.currentRevision;
  }

  get compactRevision(): number {
    return this.#state.store.compactRevision;
  }

  get appliedIndex(): number {
    return this.#state.cluster.appliedIndex;
  }

  /** 0 until the first claim. */
  get epoch(): number {
    return this.#state.cluster.epoch;
  }

  /** '' until the first claim. */
  get leader(): string {
    return this.#state.cluster.leader;
  }

  /** How long the leader of this epoch may act after its last confirmed append. */
  get leaderLeaseMs(): number {
    return this.#state.cluster.leaderLeaseMs;
  }

  /** Milliseconds that passed under a leader, as far as the log knows. */
  get clusterTimeMs(): number {
    return this.#state.cluster.clusterTimeMs;
  }

  /** 0n until the cluster is created. */
  get clusterId(): bigint {
    return this.#state.cluster.clusterId;
  }

  /** The shared secret of the cluster's servers; '' until it is created. Never leaves the servers. */
  get secret(): string {
    return this.#state.cluster.secret;
  }

  /** The member to which the leader of this epoch has resigned; 0n while it has not. */
  get successor(): bigint {
    return this.#state.cluster.successor;
  }

  /** Sorted by id. */
  get members(): readonly Member[] {
    return this.#state.cluster.members;
  }

  get alarms(): readonly Alarm[] {
    return this.#state.cluster.alarms;
  }

  /** Users, roles and permissions. */
  get auth(): AuthState {
    return this.#state.cluster.auth;
  }

  /**
   * What the requester may read at this moment; undefined while authentication is disabled. Reads must be checked in
   * the turn in which they read. Commands need no check beforehand: apply checks them.
   */
  accessOf(by: Requester | undefined): AccessCheck | undefined {
    const { cluster, leases } = this.#state;
    return cluster.auth.enabled ? new AccessCheck(cluster.auth, leases, by) : undefined;
  }

  range(request: RangeRequest): RangeResult | CoreError {
    if (isAlarmed(this.#state, 'corrupt')) return coreError('Corrupt');
    return readRange(this.#state.store, request);
  }

  /**
   * Reads a long range in slices, at the state of this moment, regardless of entries applied between the slices. The
   * caller must `pin` its revision meanwhile.
   */
  beginScan(request: RangeRequest): RangeScan | CoreError {
    if (isAlarmed(this.#state, 'corrupt')) return coreError('Corrupt');
    return beginScan(this.#state.store, request);
  }

  /** Keeps the versions that a read at `revision` needs from being collected, until the returned function is called. */
  pin(revision: number): () => void {
    return this.#state.store.pin(revision);
  }

  /** For a transaction for which `isReadOnlyTxn` holds: it needs no log entry. Throws for one that may write. */
  readTxn(request: TxnRequest): TxnResult | CoreError {
    if (!isReadOnlyTxn(request)) throw new Error('state machine: a transaction that may write must go through the log');
    if (isAlarmed(this.#state, 'corrupt')) return coreError('Corrupt');
    const { store, leases } = this.#state;
    const plan = planTxn(store, request, this.txnLimits);
    if ('kind' in plan) return plan;
    return checkPlan(store, leases, plan) ?? runPlan(store, plan, true);
  }

  /** Whether the transaction exceeds the limits in the current state, so that it need not be proposed. */
  checkTxnCost(request: TxnRequest): CoreError | undefined {
    const plan = planTxn(this.#state.store, request, this.txnLimits);
    return 'kind' in plan ? plan : undefined;
  }

  /** The limits of a transaction proposed now: those in the log, or the defaults until the log has limits. */
  get txnLimits(): TxnLimits {
    return this.#state.cluster.txnLimits ?? defaultTxnLimits;
  }

  /** Whether an entry has set the limits. */
  get hasTxnLimits(): boolean {
    return this.#state.cluster.txnLimits !== undefined;
  }

  /** The number of keys that `command` would scan or delete now; about `atMost` if there are more. */
  countRows(command: Command, atMost: number): number {
    const { store, leases } = this.#state;
    switch (command.kind) {
      case 'txn':
        return hasInterval(command.txn) ? countTxnRows(store, command.txn, atMost) : 0;
      case 'deleteRange':
        return countEntries(store, command.deleteRange, atMost);
      case 'leaseRevoke':
        return leases.keyCountOf(command.id);
      default:
        return 0;
    }
  }

  /** 0 or less: the hash at the current revision. */
  hashKv(revision: number): KvHash | CoreError {
    return this.#state.store.hashKv(revision);
  }

  /** The number of keys that exist now. */
  get keyCount(): number {
    return this.#state.store.liveCount;
  }

  get leaseCount(): number {
    return this.#state.leases.size;
  }

  lease(id: bigint): Lease | undefined {
    return this.#state.leases.get(id);
  }

  /**
   * The leases at this moment, ordered by id, unaffected by changes during the iteration: the caller may read them in
   * slices.
   */
  leases(): IterableIterator<Lease> {
    return this.#state.leases.freeze()();
  }

  /**
   * In byte order, at this moment, unaffected by changes during the iteration; none for a lease that does not exist.
   */
  keysOfLease(id: bigint): Iterator<string> {
    return this.#state.leases.keysOf(id);
  }

  /** The number of keys of a lease; 0 for a lease that does not exist. */
  keyCountOfLease(id: bigint): number {
    return this.#state.leases.keyCountOf(id);
  }

  /** In cluster time; undefined while the deadline is in the current leader's memory. */
  deadlineOf(lease: Lease): number | undefined {
    return this.#state.leases.deadlineOf(lease);
  }

  /** An estimate of the memory of keys, leases and users, including compacted versions that are not freed yet. */
  get sizeBytes(): number {
    return this.#state.store.heldBytes + this.#state.leases.bytes + this.auth.bytes;
  }

  /**
   * The size that the quota bounds: everything except the deletions at the compact revision. Only a later write frees
   * these, so a quota that counted them could refuse that write forever. They take less memory than the keys they
   * deleted.
   */
  get sizeForQuotaBytes(): number {
    return this.sizeBytes - this.#state.store.lastDeletionsBytes;
  }

  /** The part of `sizeBytes` that would be left after a compaction of all past revisions. */
  get sizeInUseBytes(): number {
    return this.#state.store.liveBytes + this.#state.leases.bytes + this.auth.bytes;
  }

  /**
   * Frees compacted versions, in up to `maxSteps` small steps. Returns whether more can be done now. Versions compacted
   * since an open snapshot or read began are kept: see `isGarbageCollectionPaused`. Never changes a response; may be
   * called at any time between entries.
   */
  collectGarbage(maxSteps: number): boolean {
    return this.#state.store.collectGarbage(maxSteps);
  }

  /** Whether every compacted version has been freed. */
  get isGarbageCollected(): boolean {
    return this.#state.store.isGarbageCollected;
  }

  /** Whether garbage collection waits for a snapshot or a read to end; a later call continues then. */
  get isGarbageCollectionPaused(): boolean {
    return this.#state.store.isGarbageCollectionPaused;
  }

  /**
   * A snapshot of the state at this moment, read chunk by chunk while entries are applied. Its versions are not
   * collected until it is done: read all chunks, or call `return`. Clients may read it: the secret of the cluster is
   * left out, and its hash reveals nothing of the secret.
   */
  snapshot(): SnapshotWriter {
    return new SnapshotWriter(this.#state, { withSecret: false });
  }

  /** As `snapshot`, with the secret: for the engine that keeps the log, from which the cluster's servers start. */
  snapshotForEngine(): SnapshotWriter {
    return new SnapshotWriter(this.#state, { withSecret: true });
  }

  /** A 32-bit hash of the whole state: equal after the same entries. Costs as much as a snapshot. */
  stateHash(): number {
    const writer = this.snapshotForEngine();
    for (let step = writer.next(); step.done !== true;) step = writer.next();
    return writer.check;
  }
}

function everyone(): boolean {
  return true;
}

function countEntries(store: KeyValueStore, { key, rangeEnd }: DeleteRangeRequest, atMost: number): number {
  let rows = 0;
  store.index.visitRange(key, rangeEnd, () => ++rows < atMost);
  return rows;
}

function refuseAll(entry: Entry): CommandResponse[] {
  return entry.commands.map(() => coreError('StaleEpoch'));
}
