import { StateMachine, type LeaseChange } from '@tenure/core';
import { toEntry } from './simulated-replica.ts';
import type { LogEntry } from './shared-log.ts';

/** Clocks run this much too fast or too slow, at most. */
export const clockErrorMax = 0.05;
/** An expiry is proposed this long after its moment, at most, on the leader's clock: a sleep and two appends. */
const expirySlackMs = 1_800;
/** What a change of leader may add to an expiry that is due: a right's length, and a heartbeat interval. */
const changeSlackMs = 1_000;
/** At every 32nd entry the states of all servers are compared: it costs as much as a snapshot. */
const hashedEvery = 32;
/** Rounding of times to whole milliseconds. */
const roundingMs = 3;

interface LeaseEnd {
  readonly cause: 'expired' | 'revoked';
  readonly atMs: number;
}

interface LeaseRecord {
  readonly id: bigint;
  readonly ttlMs: number;
  readonly grantedMs: number;
  /** True time from which its TTL must at least run: when its last acknowledged renewal reached the keeper. */
  countsFromMs: number;
  /** By the rules, in cluster time; undefined while it is live. */
  dateMs: number | undefined;
  /** Changes of leader that came after the date. */
  lateClaims: number;
}

/**
 * Sees every entry at the moment when it becomes durable, and every acknowledgement at the moment when a leader gives
 * it, all in true time, and notes what breaks an invariant (L1-L9 of the reliability rules).
 */
export class LeaseChecker {
  readonly state = new StateMachine();
  readonly violations: string[] = [];
  readonly counts = { expired: 0, acknowledged: 0, claims: 0, dated: 0, renewedByLog: 0, revoked: 0, resigned: 0 };
  readonly #trueMs: () => number;
  readonly #records = new Map<bigint, LeaseRecord>();
  readonly #ends = new Map<bigint, LeaseEnd>();
  readonly #hashes = new Map<number, number>();

  constructor(trueMs: () => number) {
    this.#trueMs = trueMs;
  }

  exists(id: bigint): boolean {
    return this.#records.has(id);
  }

  /** Since when the lease of that id has existed without a break, in the log; undefined while there is none. */
  grantedMs(id: bigint): number | undefined {
    return this.#records.get(id)?.grantedMs;
  }

  /** How and when the last lease of that id ended. */
  endOf(id: bigint): LeaseEnd | undefined {
    return this.#ends.get(id);
  }

  violated(rule: string, what: string): void {
    this.violations.push(`${rule} at ${Math.round(this.#trueMs())} ms: ${what}`);
  }

  committed(entry: LogEntry): void {
    const applied = this.state.apply(toEntry(entry));
    const first = entry.proposed[0]?.command;
    if (first?.kind === 'claim' && applied.responses[0]?.kind !== 'error') this.#claimed();
    else if (entry.epoch !== this.state.epoch) {
      this.violated('A3', `entry ${entry.index} of epoch ${entry.epoch} follows a claim of ${this.state.epoch}`);
    }
    if (first?.kind === 'resign' && applied.responses[0]?.kind === 'ok') this.counts.resigned += 1;
    for (const change of applied.leaseChanges) this.#changed(change);
    if (entry.index % hashedEvery === 0) this.#hashes.set(entry.index, this.state.stateHash());
  }

  /** A server has applied so much. */
  applied(state: StateMachine): void {
    const expected = this.#hashes.get(state.appliedIndex);
    if (expected !== undefined && expected !== state.stateHash()) {
      this.violated('L9', `a server's state differs at index ${state.appliedIndex}`);
    }
  }

  /** The leader of `epoch` says yes to a renewal that reached its keeper at `askedMs`. */
  acknowledged(id: bigint, askedMs: number, epoch: number): void {
    this.counts.acknowledged += 1;
    if (epoch < this.state.epoch) {
      const claimed = `epoch ${this.state.epoch} has been claimed`;
      this.violated('L8', `the leader of epoch ${epoch} acknowledged a renewal of lease ${id} although ${claimed}`);
    }
    const record = this.#records.get(id);
    if (record !== undefined) record.countsFromMs = Math.max(record.countsFromMs, askedMs);
    else if (this.#ends.get(id)?.cause === 'expired') {
      this.violated('L2', `a renewal of lease ${id} was acknowledged after the lease had expired`);
    }
  }

  #claimed(): void {
    this.counts.claims += 1;
    const nowMs = this.state.clusterTimeMs;
    for (const record of this.#records.values()) {
      if (record.dateMs === undefined) record.dateMs = nowMs + record.ttlMs;
      else if (nowMs >= record.dateMs) record.lateClaims += 1;
    }
  }

  #changed(change: LeaseChange): void {
    switch (change.kind) {
      case 'granted': {
        const { id, ttlMs } = change.lease;
        const nowMs = this.#trueMs();
        const record = { id, ttlMs, grantedMs: nowMs, countsFromMs: nowMs, dateMs: undefined, lateClaims: 0 };
        this.#records.set(id, record);
        break;
      }
      case 'renewed':
        this.#renewed(this.#records.get(change.lease.id));
        break;
      case 'dated':
        this.#dated(this.#records.get(change.lease.id), change.lease.deadlineMs);
        break;
      case 'removed':
        this.#removed(change.id, change.cause);
        break;
    }
  }

  #renewed(record: LeaseRecord | undefined): void {
    if (record === undefined) return;
    this.counts.renewedByLog += 1;
    record.countsFromMs = this.#trueMs();
    record.dateMs = undefined;
    record.lateClaims = 0;
  }

  #dated(record: LeaseRecord | undefined, deadlineMs: number | undefined): void {
    if (record === undefined || deadlineMs === undefined) return;
    this.counts.dated += 1;
    record.dateMs = deadlineMs;
    if (deadlineMs > this.state.clusterTimeMs + record.ttlMs + roundingMs) {
      this.violated('L6', `lease ${record.id} was dated later than a whole TTL from now`);
    }
  }

  #removed(id: bigint, cause: 'revoked' | 'expired'): void {
    const record = this.#records.get(id);
    this.#records.delete(id);
    this.#ends.set(id, { cause, atMs: this.#trueMs() });
    if (cause === 'revoked') this.counts.revoked += 1;
    if (cause === 'revoked' || record === undefined) return;
    this.counts.expired += 1;
    const ranMs = this.#trueMs() - record.countsFromMs;
    const leastMs = record.ttlMs / (1 + clockErrorMax) - roundingMs;
    if (ranMs < leastMs) {
      const what = `lease ${id} of ${record.ttlMs} ms expired after ${Math.round(ranMs)} ms`;
      this.violated('L1', what);
    }
    const lateMs = record.dateMs === undefined ? 0 : this.state.clusterTimeMs - record.dateMs;
    if (lateMs > expirySlackMs + changeSlackMs * record.lateClaims) {
      this.violated('L6', `lease ${id} expired ${Math.round(lateMs)} ms of cluster time after its date`);
    }
  }
}
