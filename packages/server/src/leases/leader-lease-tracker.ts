import type { Lease, LeaseAt } from '@tenure/core';
import { DeadlineQueue } from './deadline-queue.ts';
import { LeaseTable } from './lease-table.ts';
import type { TrackedLease, TrackedState } from './tracked-lease.ts';

/** What a renewal comes to that memory does not grant: through the log, later, or never. */
export type RenewalNotGranted = 'propose' | 'wait' | 'unknown';

/** A lease that has gone unrenewed for two thirds of its TTL and should be dated at `deadlineMs` (lease clock). */
export interface DueDate extends LeaseAt {
  readonly deadlineMs: number;
}

/** What is due, as data: the caller proposes it, and tells the outcome through `apply*` and `*Failed`. */
export interface DueLeases {
  readonly expire: readonly LeaseAt[];
  readonly date: readonly DueDate[];
}

/**
 * The deadlines of all leases, on the server that leads. It has no clock: every call brings the time of the lease
 * clock. It decides nothing about the state: what is due goes out as data and comes back as changes of applied
 * entries.
 *
 * A renewal of a live lease moves its deadline and does not touch the queue: the queue holds the earliest moment at
 * which something could be due, and when that comes the lease is looked at and put back. So a renewal costs O(1), and
 * a lease that is renewed in time costs one move in the queue for every two thirds of its TTL.
 */
export class LeaderLeaseTracker {
  readonly #table: LeaseTable;
  readonly #queue = new DeadlineQueue();
  #live = 0;

  /** `seed`: see IdIndex. */
  constructor(seed: number) {
    this.#table = new LeaseTable(seed);
  }

  get size(): number {
    return this.#table.size;
  }

  /** How many leases are live; the rest is dated. */
  get liveCount(): number {
    return this.#live;
  }

  has(id: bigint): boolean {
    return this.#table.find(id) >= 0;
  }

  /** A lease as it is at this moment, or undefined. The object is a copy: what happens later does not show in it. */
  get(id: bigint): TrackedLease | undefined {
    const row = this.#table.find(id);
    return row < 0 ? undefined : this.#table.lease(row);
  }

  /** When a lease ends unless it is renewed (lease clock), or undefined if it is not known. */
  deadlineMs(id: bigint): number | undefined {
    const row = this.#table.find(id);
    return row < 0 ? undefined : this.#table.deadlineMsOf(row);
  }

  /** When something may be due, or undefined when nothing ever will be. Never later than the truth. */
  nextDueMs(): number | undefined {
    return this.#queue.firstDueMs();
  }

  /**
   * Takes over a lease of an earlier epoch: it is dated at `deadlineMs`. A lease that is known already stays as it
   * is.
   */
  adopt(lease: Lease, deadlineMs: number): void {
    if (!this.has(lease.id)) this.#add(lease, deadlineMs, 'dated');
  }

  applyGranted(lease: Lease, nowMs: number): void {
    this.applyRemoved(lease.id);
    this.#add(lease, nowMs + lease.ttlMs, 'live');
  }

  applyRenewed(lease: Lease, nowMs: number): void {
    const row = this.#table.find(lease.id);
    if (row < 0) {
      this.#add(lease, nowMs + lease.ttlMs, 'live');
      return;
    }
    this.#table.setRenewIndex(row, lease.renewIndex);
    this.#table.setDeadlineMs(row, nowMs + lease.ttlMs);
    this.#setState(row, 'live');
    this.#queue.set(row, this.#datingMs(row));
  }

  applyDated(lease: Lease): void {
    const row = this.#table.find(lease.id);
    if (row >= 0 && this.#table.stateOf(row) === 'dating') this.#setState(row, 'dated');
  }

  /** The lease as it was when it was removed, or undefined if it was not known. */
  applyRemoved(id: bigint): TrackedLease | undefined {
    const row = this.#table.find(id);
    if (row < 0) return undefined;
    const lease = this.#table.lease(row);
    if (lease.state === 'live') this.#live -= 1;
    this.#queue.remove(row);
    this.#table.remove(row);
    return lease;
  }

  /** Renews a live lease and returns its granted TTL in milliseconds, or says what becomes of the renewal instead. */
  renew(id: bigint, nowMs: number): number | RenewalNotGranted {
    const row = this.#table.find(id);
    if (row < 0) return 'unknown';
    switch (this.#table.stateOf(row)) {
      case 'live': {
        const ttlMs = this.#table.ttlMsOf(row);
        this.#table.setDeadlineMs(row, nowMs + ttlMs);
        return ttlMs;
      }
      case 'dating':
      case 'dated':
        this.#setState(row, 'renewing');
        this.#queue.remove(row);
        return 'propose';
      case 'renewing':
      case 'expiring':
        return 'wait';
    }
  }

  /** Takes out what is due at `nowMs`, at most `maxLeases` of each kind. Empty when nothing is due. */
  takeDue(nowMs: number, maxLeases: number): DueLeases {
    const expire: LeaseAt[] = [];
    const date: DueDate[] = [];
    const dueMs = (): number => this.#queue.firstDueMs() ?? Infinity;
    while (expire.length < maxLeases && date.length < maxLeases && dueMs() <= nowMs) {
      const row = this.#queue.first();
      const { id, renewIndex, deadlineMs, state } = this.#table.lease(row);
      if (nowMs >= deadlineMs) {
        this.#queue.remove(row);
        this.#setState(row, 'expiring');
        expire.push({ id, renewIndex });
      } else if (state === 'live' && nowMs >= this.#datingMs(row)) {
        this.#setState(row, 'dating');
        this.#queue.set(row, deadlineMs);
        date.push({ id, renewIndex, deadlineMs });
      } else {
        this.#queue.set(row, state === 'live' ? this.#datingMs(row) : deadlineMs);
      }
    }
    return { expire, date };
  }

  /** An expiry came back without having removed these: they are due again at once. */
  expiryFailed(leases: readonly LeaseAt[]): void {
    for (const lease of leases) {
      const row = this.#rowIn('expiring', lease);
      if (row < 0) continue;
      this.#setState(row, 'dated');
      this.#queue.set(row, this.#table.deadlineMsOf(row));
    }
  }

  /** A checkpoint could not be proposed: these are live again, and due to be dated. */
  datingFailed(leases: readonly LeaseAt[]): void {
    for (const lease of leases) {
      const row = this.#rowIn('dating', lease);
      if (row < 0) continue;
      this.#setState(row, 'live');
      this.#queue.set(row, this.#datingMs(row));
    }
  }

  /** A renewal through the log failed: these are dated as before. */
  renewalFailed(ids: readonly bigint[]): void {
    for (const id of ids) {
      const row = this.#table.find(id);
      if (row < 0 || this.#table.stateOf(row) !== 'renewing') continue;
      this.#setState(row, 'dated');
      this.#queue.set(row, this.#table.deadlineMsOf(row));
    }
  }

  /** The row of a lease that is in `state` and was not granted or renewed anew meanwhile, or -1. */
  #rowIn(state: TrackedState, { id, renewIndex }: LeaseAt): number {
    const row = this.#table.find(id);
    if (row < 0 || this.#table.stateOf(row) !== state || this.#table.renewIndexOf(row) !== renewIndex) return -1;
    return row;
  }

  #add({ id, ttlMs, renewIndex }: Lease, deadlineMs: number, state: 'live' | 'dated'): void {
    const row = this.#table.add({ id, ttlMs, renewIndex, deadlineMs, state });
    if (state === 'live') this.#live += 1;
    this.#queue.set(row, state === 'live' ? this.#datingMs(row) : deadlineMs);
  }

  #setState(row: number, state: TrackedState): void {
    if (this.#table.stateOf(row) === 'live') this.#live -= 1;
    if (state === 'live') this.#live += 1;
    this.#table.setState(row, state);
  }

  /** When a live lease has gone unrenewed for two thirds of its TTL (rule 7). */
  #datingMs(row: number): number {
    return this.#table.deadlineMsOf(row) - this.#table.ttlMsOf(row) / 3;
  }
}
