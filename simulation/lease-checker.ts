import { StateMachine, type LeaseChange } from '@tenure/core';
import { ExpiryBound, changeSlackMs, clockErrorMax, expirySlackMs, type UnrenewedTime } from './expiry-bound.ts';
import { toEntry } from './simulated-replica.ts';
import type { LogEntry } from './shared-log.ts';

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
  /** From when its TTL must run, in true time: its last acknowledged renewal reached the keeper then. */
  time: UnrenewedTime;
  /** By the rules, in cluster time; undefined while it is live. */
  dateMs: number | undefined;
  /** Changes of leader that came after the date. */
  lateClaims: number;
  isOverdue: boolean;
}

/**
 * Sees every entry at the moment when it becomes durable, and every acknowledgement at the moment when a leader gives
 * it, all in true time, and notes what breaks an invariant (L1-L9 of the reliability rules, and as L11 the bound of
 * `expiry-bound.ts`).
 */
export class LeaseChecker {
  readonly state = new StateMachine();
  readonly violations: string[] = [];
  readonly counts = { expired: 0, acknowledged: 0, claims: 0, dated: 0, renewedByLog: 0, revoked: 0, resigned: 0 };
  /** The longest that a deposed leader had been running again when it acknowledged a renewal all the same. */
  wronglyAwakeMs = 0;
  readonly #trueMs: () => number;
  readonly #records = new Map<bigint, LeaseRecord>();
  readonly #ends = new Map<bigint, LeaseEnd>();
  readonly #hashes = new Map<number, number>();

  readonly #bound: ExpiryBound;

  /** `stoppedMs` is how long the process of that leader has stood still in all. */
  constructor(trueMs: () => number, stoppedMs: (leader: string) => number) {
    this.#trueMs = trueMs;
    this.#bound = new ExpiryBound(stoppedMs);
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

  /** `beganMs` is when its append began. */
  committed(entry: LogEntry, beganMs: number): void {
    const applied = this.state.apply(toEntry(entry));
    const first = entry.proposed[0]?.command;
    if (first?.kind === 'claim' && applied.responses[0]?.kind !== 'error') this.#claimed();
    else if (entry.epoch !== this.state.epoch) {
      this.violated('A3', `entry ${entry.index} of epoch ${entry.epoch} follows a claim of ${this.state.epoch}`);
    } else this.#bound.appended(this.state.leader, beganMs);
    if (first?.kind === 'resign' && applied.responses[0]?.kind === 'ok') this.counts.resigned += 1;
    for (const change of applied.leaseChanges) this.#changed(change);
    for (const record of this.#records.values()) this.#judge(record);
    if (entry.index % hashedEvery === 0) this.#hashes.set(entry.index, this.state.stateHash());
  }

  /** A server has applied so much. */
  applied(state: StateMachine): void {
    const expected = this.#hashes.get(state.appliedIndex);
    if (expected !== undefined && expected !== state.stateHash()) {
      this.violated('L9', `a server's state differs at index ${state.appliedIndex}`);
    }
  }

  /**
   * The leader of `epoch` says yes to a renewal that reached its keeper at `askedMs`; its process has been running
   * without a break for `awakeMs`.
   */
  acknowledged(id: bigint, askedMs: number, epoch: number, awakeMs: number): void {
    this.counts.acknowledged += 1;
    if (epoch < this.state.epoch) {
      const claimed = `epoch ${this.state.epoch} has been claimed`;
      this.violated('L8', `the leader of epoch ${epoch} acknowledged a renewal of lease ${id} although ${claimed}`);
      this.wronglyAwakeMs = Math.max(this.wronglyAwakeMs, awakeMs);
      // No lease lives by such an answer, so no other rule is judged by it.
      return;
    }
    const record = this.#records.get(id);
    if (record !== undefined) {
      if (askedMs > record.time.sinceMs) record.time = this.#bound.renewed(askedMs);
    } else if (this.#ends.get(id)?.cause === 'expired') {
      this.violated('L2', `a renewal of lease ${id} was acknowledged after the lease had expired`);
    }
  }

  #claimed(): void {
    this.counts.claims += 1;
    const nowMs = this.state.clusterTimeMs;
    const leases = [...this.#records.values()].map((record) => ({ ...record, isLive: record.dateMs === undefined }));
    const undated = this.#bound.changed(this.state.leader, this.#trueMs(), leases);
    if (undated > 0) this.violated('L11', `${undated} leases were live that had not been renewed for most of a TTL`);
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
        const time = this.#bound.renewed(nowMs);
        const record = { id, ttlMs, grantedMs: nowMs, time, dateMs: undefined, lateClaims: 0, isOverdue: false };
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
    record.time = this.#bound.renewed(this.#trueMs());
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
    this.#judge(record);
    const ranMs = this.#trueMs() - record.time.sinceMs;
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

  /** Said once of a lease. */
  #judge(record: LeaseRecord): void {
    const lateMs = this.#bound.lateMs(record.ttlMs, record.time, this.#trueMs());
    if (lateMs <= 0 || record.isOverdue) return;
    record.isOverdue = true;
    this.violated('L11', `lease ${record.id} is there ${Math.round(lateMs)} ms after the last moment that it may be`);
  }
}
