import type { NodeClock } from '@tenure/test-support';
import { StateMachine, type LeaseChange, type LeaseDate } from '@tenure/core';
import { decodeCommand } from '../../packages/server/src/replica/command-codec.ts';
import { decodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import type { Coverage } from '../world/coverage.ts';
import type { DurableEntry } from '../world/simulated-log.ts';
import { ExpiryBound, changeSlackMs, clockErrorMax, expirySlackMs, type UnrenewedTime } from './expiry-bound.ts';
import { RenewalArrivals, type Arrival } from './renewal-arrivals.ts';
import type { Violations } from '../world/violations.ts';

/** The states of all servers are compared at every 32nd entry: a comparison costs as much as a snapshot. */
const hashedEvery = 32;
/** An expiry so soon after a change of leader is counted as one during it. */
const changeMs = 1_500;
/** A renewal so close to the append that expires its lease is counted: both are decided in one turn or two. */
const narrowMs = 5;
/** A server notices a pause of this length, but for the time since its clock's last tick (`lease-clock.ts`). */
const noticedPauseMs = 170;
const unnoticedMs = 60;
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
  /** The start of its TTL, in true time: when the last acknowledged renewal reached the lessor. */
  time: UnrenewedTime;
  /** Its deadline in cluster time, by the rules; undefined while the deadline is only in memory. */
  dateMs: number | undefined;
  /** In cluster time: a whole TTL after it was granted or renewed by the log. No deadline of it may be earlier. */
  leastDateMs: number;
  /** Changes of leader after the checkpoint. */
  lateClaims: number;
  /** For how long leaders were closing since. */
  closedMs: number;
  isOverdue: boolean;
  /** The leader that renewed or granted it last, and the number of pauses of its process by then. */
  renewer: NodeClock | undefined;
  pauses: number;
}

export interface LeaseCheckerOptions {
  readonly trueMs: () => number;
  readonly violations: Violations;
  readonly coverage: Coverage;
  /** How long the orderly stop of that process has taken so far. A closing leader appends, but expires no lease. */
  readonly closingMs: (process: NodeClock) => number;
  /** When that stop began; Infinity before. */
  readonly closingFromMs: (process: NodeClock) => number;
}

/**
 * Observes every entry when it becomes durable and every acknowledgement when a leader gives it, all in true time, and
 * reports each violation of an invariant (A2, A3, L1-L3 and L6-L10 of the reliability rules, and as L11 the bound of
 * `expiry-bound.ts`). It judges while faults happen.
 */
export class LeaseChecker {
  readonly state = new StateMachine();
  /** The longest time for which a resumed leader was running when it wrongly acknowledged a renewal. */
  wronglyAwakeMs = 0;
  readonly #options: LeaseCheckerOptions;
  readonly #records = new Map<bigint, LeaseRecord>();
  readonly #ends = new Map<bigint, LeaseEnd>();
  readonly #hashes = new Map<number, number>();
  readonly #bound: ExpiryBound;
  readonly #arrivals = new RenewalArrivals();
  /** The process of the leader that the log names, and when its claim became durable. */
  #leader: NodeClock | undefined;
  #claimedMs = 0;

  constructor(options: LeaseCheckerOptions) {
    this.#options = options;
    const idleMs = (process: NodeClock): number => process.stoppedMs + options.closingMs(process);
    this.#bound = new ExpiryBound(() => (this.#leader === undefined ? 0 : idleMs(this.#leader)));
  }

  exists(id: bigint): boolean {
    return this.#records.has(id);
  }

  /** Since when the log has had a lease with that id without a break; undefined without such a lease. */
  grantedMs(id: bigint): number | undefined {
    return this.#records.get(id)?.grantedMs;
  }

  /** How and when the last lease with that id ended. */
  endOf(id: bigint): LeaseEnd | undefined {
    return this.#ends.get(id);
  }

  violated(rule: string, what: string): void {
    this.#options.violations.report(rule, what);
  }

  committed({ position: { index }, bytes, beganMs, writer }: DurableEntry): void {
    const { headers, commands } = decodeEntry(bytes);
    const decoded = commands.map(decodeCommand);
    if (this.state.successor !== 0n && decoded[0]?.kind !== 'claim') {
      this.violated('A3', `entry ${index} follows the resignation of its leader`);
    }
    for (const command of decoded) if (command.kind === 'checkpointLeases') this.#countGrantedAgain(command.leases);
    const applied = this.state.apply({ index, ...headers, commands: decoded });
    const first = decoded[0];
    if (first?.kind === 'claim' && applied.responses[0]?.kind !== 'error') this.#claimed(writer);
    else if (headers.epoch !== this.state.epoch) {
      this.violated('A3', `entry ${index} of epoch ${headers.epoch} follows a claim of ${this.state.epoch}`);
    } else this.#bound.appended(beganMs);
    if (first?.kind === 'resign' && applied.responses[0]?.kind === 'ok') this.#count('leadership transferred');
    for (const change of applied.leaseChanges) this.#changed(change, beganMs, writer);
    for (const record of this.#records.values()) this.#judge(record);
    if (index % hashedEvery === 0) this.#hashes.set(index, this.state.stateHash());
  }

  /** A renewal has reached the socket of that process, which may be stalled. */
  arrived(id: bigint, process: NodeClock, isLost: () => boolean): void {
    this.#arrivals.add(id, { process, atMs: this.#options.trueMs(), isLost });
  }

  /** A server has applied entries up to here. */
  applied(state: StateMachine): void {
    const { appliedIndex } = state;
    if (appliedIndex > this.state.appliedIndex) {
      this.violated('A4', `a server applied entry ${appliedIndex}, which is not durable`);
    }
    const expected = this.#hashes.get(appliedIndex);
    if (expected !== undefined && expected !== state.stateHash()) {
      this.violated('L9', `a server's state differs at index ${state.appliedIndex}`);
    }
  }

  /**
   * The leader of `epoch` acknowledges a renewal that reached its lessor at `askedMs`. Its process has been running
   * without a break for `awakeMs`.
   */
  acknowledged(id: bigint, askedMs: number, epoch: number, awakeMs: number): void {
    this.#count('renewal acknowledged');
    if (epoch < this.state.epoch) {
      const claimed = `epoch ${this.state.epoch} has been claimed`;
      this.violated('L8', `the leader of epoch ${epoch} acknowledged a renewal of lease ${id} although ${claimed}`);
      this.wronglyAwakeMs = Math.max(this.wronglyAwakeMs, awakeMs);
      // A wrong answer does not renew a lease, so the other rules do not apply to it.
      return;
    }
    const record = this.#records.get(id);
    if (record !== undefined) {
      if (askedMs > record.time.sinceMs) record.time = this.#bound.renewed(askedMs);
      Object.assign(record, pausesOf(this.#leader));
      this.#arrivals.answered(id);
    } else if (this.#ends.get(id)?.cause === 'expired') {
      this.violated('L2', `a renewal of lease ${id} was acknowledged after the lease had expired`);
    }
  }

  #claimed(writer: NodeClock): void {
    this.#count('change of leader');
    const closedMs = this.#leader === undefined ? 0 : this.#options.closingMs(this.#leader);
    this.#leader = writer;
    this.#claimedMs = this.#options.trueMs();
    const nowMs = this.state.clusterTimeMs;
    const leases = [...this.#records.values()].map((record) => ({
      ...record,
      isInMemory: record.dateMs === undefined,
    }));
    this.#bound.changed(this.#options.trueMs(), leases);
    for (const record of this.#records.values()) {
      if (record.dateMs === undefined) record.dateMs = nowMs + record.ttlMs;
      else if (nowMs >= record.dateMs) record.lateClaims += 1;
      record.closedMs += closedMs;
    }
  }

  #changed(change: LeaseChange, beganMs: number, writer: NodeClock): void {
    switch (change.kind) {
      case 'granted': {
        const { id, ttlMs } = change.lease;
        const nowMs = this.#options.trueMs();
        const time = this.#bound.renewed(nowMs);
        const record = {
          id,
          ttlMs,
          grantedMs: nowMs,
          time,
          dateMs: undefined,
          leastDateMs: this.state.clusterTimeMs + ttlMs,
          lateClaims: 0,
          closedMs: 0,
          isOverdue: false,
          ...pausesOf(writer),
        };
        this.#records.set(id, record);
        break;
      }
      case 'renewed':
        this.#renewed(this.#records.get(change.lease.id), writer);
        break;
      case 'checkpointed':
        this.#checkpointed(this.#records.get(change.lease.id), change.lease.deadlineMs);
        break;
      case 'removed':
        this.#removed(change.id, change.cause, { beganMs, writer });
        break;
    }
  }

  #renewed(record: LeaseRecord | undefined, writer: NodeClock): void {
    if (record === undefined) return;
    this.#count('lease renewed by the log');
    record.time = this.#bound.renewed(this.#options.trueMs());
    Object.assign(record, pausesOf(writer));
    record.dateMs = undefined;
    record.leastDateMs = this.state.clusterTimeMs + record.ttlMs;
    record.lateClaims = 0;
  }

  #checkpointed(record: LeaseRecord | undefined, deadlineMs: number | undefined): void {
    if (record === undefined || deadlineMs === undefined) return;
    this.#count('lease checkpointed');
    record.dateMs = deadlineMs;
    if (deadlineMs < record.leastDateMs - roundingMs) {
      this.violated('L6', `the checkpointed deadline of lease ${record.id} is earlier than a whole TTL from its start`);
    }
    if (deadlineMs > this.state.clusterTimeMs + record.ttlMs + roundingMs) {
      this.violated('L6', `the checkpointed deadline of lease ${record.id} is later than a whole TTL from now`);
    }
  }

  #removed(id: bigint, cause: 'revoked' | 'expired', by: { beganMs: number; writer: NodeClock }): void {
    const record = this.#records.get(id);
    this.#records.delete(id);
    this.#ends.set(id, { cause, atMs: this.#options.trueMs() });
    if (cause === 'revoked') this.#count('lease revoked');
    if (cause === 'revoked' || record === undefined) return;
    this.#count('lease expired');
    if (by.beganMs - this.#claimedMs < changeMs) this.#count('lease expired just after a change of leader');
    const isNarrow = ({ atMs }: Arrival): boolean => Math.abs(atMs - by.beganMs) < narrowMs;
    if (this.#arrivals.of(id).some(isNarrow)) this.#count('lease expired in the turn in which a renewal arrived');
    this.#judgeArrivals(record, by);
    this.#judgePauses(record, by.writer);
    this.#judgeClosing(record, by.writer);
    this.#judge(record);
    const ranMs = this.#options.trueMs() - record.time.sinceMs;
    const leastMs = record.ttlMs / (1 + clockErrorMax) - roundingMs;
    if (ranMs < leastMs) {
      const what = `lease ${id} of ${record.ttlMs} ms expired after ${Math.round(ranMs)} ms`;
      this.violated('L1', what);
    }
    const lateMs = record.dateMs === undefined ? 0 : this.state.clusterTimeMs - record.dateMs;
    if (lateMs > expirySlackMs + changeSlackMs * record.lateClaims + record.closedMs) {
      this.violated('L6', `lease ${id} expired ${Math.round(lateMs)} ms of cluster time after its deadline`);
    }
  }

  /** A renewal that reached the leader's socket in time renews the lease, however long the process was stalled. */
  #judgeArrivals({ id, ttlMs, time }: LeaseRecord, { beganMs, writer }: { beganMs: number; writer: NodeClock }): void {
    const deadlineMs = time.sinceMs + ttlMs / (1 + clockErrorMax) - roundingMs;
    const isInTime = ({ atMs }: Arrival): boolean => atMs > time.sinceMs && atMs < Math.min(deadlineMs, beganMs);
    const ignored = this.#arrivals
      .of(id)
      .find((one) => one.process === writer && one.atMs > this.#claimedMs && isInTime(one) && !one.isLost());
    if (ignored === undefined) return;
    const earlyMs = Math.round(deadlineMs - ignored.atMs);
    this.violated('L10', `lease ${id} expired although a renewal was in its leader's socket ${earlyMs} ms before`);
  }

  /** A leader that is stopping answers no renewal, so it expires no lease that comes due meanwhile. */
  #judgeClosing({ id, ttlMs, time }: LeaseRecord, writer: NodeClock): void {
    const earliestDueMs = time.sinceMs + ttlMs / (1 + clockErrorMax) - roundingMs;
    if (earliestDueMs <= this.#options.closingFromMs(writer)) return;
    this.violated('L10', `lease ${id} came due while its leader was stopping, and was expired by it`);
  }

  /** A leader's pauses do not count against a lease: no renewal could be read. */
  #judgePauses({ id, ttlMs, time, renewer, pauses }: LeaseRecord, writer: NodeClock): void {
    // The pauses of an earlier leader are part of the time in which none led.
    if (renewer !== writer || time.sinceMs < this.#claimedMs) return;
    const noticed = writer.pauses.slice(pauses).filter((pauseMs) => pauseMs >= noticedPauseMs);
    const noticedMs = noticed.reduce((sum, pauseMs) => sum + pauseMs - unnoticedMs, 0);
    const forgivenMs = noticedMs / (1 + clockErrorMax);
    const ranMs = this.#options.trueMs() - time.sinceMs - forgivenMs;
    if (forgivenMs > 0) this.#count('lease expired after a stall was forgiven');
    if (ranMs >= ttlMs / (1 + clockErrorMax) - roundingMs) return;
    this.violated('L10', `lease ${id} of ${ttlMs} ms expired after ${Math.round(ranMs)} ms in which its leader ran`);
  }

  #countGrantedAgain(leases: readonly LeaseDate[]): void {
    for (const { id, renewIndex } of leases) {
      const lease = this.state.lease(id);
      if (lease !== undefined && lease.renewIndex !== renewIndex) this.#count('checkpoint of a lease granted again');
    }
  }

  #count(what: string): void {
    this.#options.coverage.count(what);
  }

  /** Reported once per lease. */
  #judge(record: LeaseRecord): void {
    if (record.isOverdue) return;
    const { id, ttlMs, time, dateMs } = record;
    const lateMs = this.#bound.lateMs(ttlMs, time, this.#options.trueMs());
    const checkpointLateMs = dateMs === undefined ? this.#bound.checkpointLateMs(ttlMs, time) : 0;
    record.isOverdue = lateMs > 0 || checkpointLateMs > 0;
    if (lateMs > 0) this.violated('L11', `lease ${id} still exists ${Math.round(lateMs)} ms after its bound`);
    else if (checkpointLateMs > 0) {
      this.violated('L11', `the checkpoint of lease ${id} is ${Math.round(checkpointLateMs)} ms late`);
    }
  }
}

function pausesOf(process: NodeClock | undefined): Pick<LeaseRecord, 'renewer' | 'pauses'> {
  return { renewer: process, pauses: process?.pauses.length ?? 0 };
}
