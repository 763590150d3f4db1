import type { Lease, LeaseAt } from '@tenure/core';
import { DeadlineQueue } from './deadline-queue.ts';
import { LeaseTable } from './lease-table.ts';
import type { TrackedLease, TrackedState } from './tracked-lease.ts';

/** What happens to a renewal that memory does not grant: proposed to the log, answered later, or refused. */
export type RenewalNotGranted = 'propose' | 'wait' | 'unknown';

/** A lease that was not renewed for two thirds of its TTL: its deadline (lease clock) is due for a checkpoint. */
export interface DueCheckpoint extends LeaseAt {
  readonly deadlineMs: number;
}

/** What is due, as data: the caller proposes it, and reports the outcome through `apply*` and `*Failed`. */
export interface DueLeases {
  readonly expire: readonly LeaseAt[];
  readonly checkpoint: readonly DueCheckpoint[];
}

/**
 * The deadlines of all leases, on the server that leads. It has no clock: every call passes the time of the lease
 * clock. It does not change the state: due leases are returned as data, and the changes come back with applied entries.
 *
 * A renewal in memory moves the deadline and does not touch the queue. The queue holds the earliest time at which a
 * lease could be due; at that time the lease is checked and put back. So a renewal costs O(1), and a lease that is
 * renewed in time costs one move in the queue per two thirds of its TTL.
 */
export class DeadlineTracker {
  readonly #table: LeaseTable;
  readonly #queue = new DeadlineQueue();
  #inMemory = 0;

  /** `seed`: see IdIndex. */
  constructor(seed: number) {
    this.#table = new LeaseTable(seed);
  }

  get size(): number {
    return this.#table.size;
  }

  /** The number of leases whose deadline is only in memory; the others are checkpointed. */
  get inMemoryCount(): number {
    return this.#inMemory;
  }

  has(id: bigint): boolean {
    return this.#table.find(id) >= 0;
  }

  /** A copy of the lease's current values, or undefined if it is unknown. */
  get(id: bigint): TrackedLease | undefined {
    const row = this.#table.find(id);
    return row < 0 ? undefined : this.#table.lease(row);
  }

  /** When a lease ends unless it is renewed (lease clock), or undefined if it is unknown. */
  deadlineMs(id: bigint): number | undefined {
    const row = this.#table.find(id);
    return row < 0 ? undefined : this.#table.deadlineMsOf(row);
  }

  /** When the next lease may be due, or undefined when none ever will be. Never too late. */
  nextDueMs(): number | undefined {
    return this.#queue.firstDueMs();
  }

  /**
   * Takes over a lease of an earlier epoch, checkpointed with `deadlineMs`. A lease that is already tracked does not
   * change.
   */
  adopt(lease: Lease, deadlineMs: number): void {
    if (!this.has(lease.id)) this.#add(lease, deadlineMs, 'checkpointed');
  }

  applyGranted(lease: Lease, nowMs: number): void {
    this.applyRemoved(lease.id);
    this.#add(lease, nowMs + lease.ttlMs, 'inMemory');
  }

  applyRenewed(lease: Lease, nowMs: number): void {
    const row = this.#table.find(lease.id);
    if (row < 0) {
      this.#add(lease, nowMs + lease.ttlMs, 'inMemory');
      return;
    }
    this.#table.setRenewIndex(row, lease.renewIndex);
    this.#table.setDeadlineMs(row, nowMs + lease.ttlMs);
    this.#setState(row, 'inMemory');
    this.#queue.set(row, this.#checkpointDueMs(row));
  }

  applyCheckpointed(lease: Lease): void {
    const row = this.#table.find(lease.id);
    if (row >= 0 && this.#table.stateOf(row) === 'checkpointing') this.#setState(row, 'checkpointed');
  }

  /** The lease as it was when it was removed, or undefined if it was unknown. */
  applyRemoved(id: bigint): TrackedLease | undefined {
    const row = this.#table.find(id);
    if (row < 0) return undefined;
    const lease = this.#table.lease(row);
    if (lease.state === 'inMemory') this.#inMemory -= 1;
    this.#queue.remove(row);
    this.#table.remove(row);
    return lease;
  }

  /**
   * Renews a lease with an in-memory deadline and returns its granted TTL in milliseconds, or says how it must be
   * renewed.
   */
  renew(id: bigint, nowMs: number): number | RenewalNotGranted {
    const row = this.#table.find(id);
    if (row < 0) return 'unknown';
    switch (this.#table.stateOf(row)) {
      case 'inMemory': {
        const ttlMs = this.#table.ttlMsOf(row);
        this.#table.setDeadlineMs(row, nowMs + ttlMs);
        return ttlMs;
      }
      case 'checkpointing':
      case 'checkpointed':
        this.#setState(row, 'renewing');
        this.#queue.remove(row);
        return 'propose';
      case 'renewing':
      case 'expiring':
        return 'wait';
    }
  }

  /**
   * Removes the leases that are due at `nowMs` from the queue, at most `maxLeases` of each kind. Empty when none is
   * due.
   */
  takeDue(nowMs: number, maxLeases: number): DueLeases {
    const expire: LeaseAt[] = [];
    const checkpoint: DueCheckpoint[] = [];
    const dueMs = (): number => this.#queue.firstDueMs() ?? Infinity;
    while (expire.length < maxLeases && checkpoint.length < maxLeases && dueMs() <= nowMs) {
      const row = this.#queue.first();
      const { id, renewIndex, deadlineMs, state } = this.#table.lease(row);
      if (nowMs >= deadlineMs) {
        this.#queue.remove(row);
        this.#setState(row, 'expiring');
        expire.push({ id, renewIndex });
      } else if (state === 'inMemory' && nowMs >= this.#checkpointDueMs(row)) {
        this.#setState(row, 'checkpointing');
        this.#queue.set(row, deadlineMs);
        checkpoint.push({ id, renewIndex, deadlineMs });
      } else {
        this.#queue.set(row, state === 'inMemory' ? this.#checkpointDueMs(row) : deadlineMs);
      }
    }
    return { expire, checkpoint };
  }

  /** An expiry ended without removing these leases: they are due again at once. */
  expiryFailed(leases: readonly LeaseAt[]): void {
    for (const lease of leases) {
      const row = this.#rowIn('expiring', lease);
      if (row < 0) continue;
      this.#setState(row, 'checkpointed');
      this.#queue.set(row, this.#table.deadlineMsOf(row));
    }
  }

  /** A checkpoint was not applied: the leases have in-memory deadlines again and are due for a checkpoint. */
  checkpointFailed(leases: readonly LeaseAt[]): void {
    for (const lease of leases) {
      const row = this.#rowIn('checkpointing', lease);
      if (row < 0) continue;
      this.#setState(row, 'inMemory');
      this.#queue.set(row, this.#checkpointDueMs(row));
    }
  }

  /** A renewal through the log failed: the leases are checkpointed as before. */
  renewalFailed(ids: readonly bigint[]): void {
    for (const id of ids) {
      const row = this.#table.find(id);
      if (row < 0 || this.#table.stateOf(row) !== 'renewing') continue;
      this.#setState(row, 'checkpointed');
      this.#queue.set(row, this.#table.deadlineMsOf(row));
    }
  }

  /** The row of a lease that is in `state` and was not granted or renewed meanwhile, or -1. */
  #rowIn(state: TrackedState, { id, renewIndex }: LeaseAt): number {
    const row = this.#table.find(id);
    if (row < 0 || this.#table.stateOf(row) !== state || this.#table.renewIndexOf(row) !== renewIndex) return -1;
    return row;
  }

  #add({ id, ttlMs, renewIndex }: Lease, deadlineMs: number, state: 'inMemory' | 'checkpointed'): void {
    const row = this.#table.add({ id, ttlMs, renewIndex, deadlineMs, state });
    if (state === 'inMemory') this.#inMemory += 1;
    this.#queue.set(row, state === 'inMemory' ? this.#checkpointDueMs(row) : deadlineMs);
  }

  #setState(row: number, state: TrackedState): void {
    if (this.#table.stateOf(row) === 'inMemory') this.#inMemory -= 1;
    if (state === 'inMemory') this.#inMemory += 1;
    this.#table.setState(row, state);
  }

  /** When a lease with an in-memory deadline has not been renewed for two thirds of its TTL (rule 7). */
  #checkpointDueMs(row: number): number {
    return this.#table.deadlineMsOf(row) - this.#table.ttlMsOf(row) / 3;
  }
}
