import type { StateMachine } from '@tenure/core';
import { chainHash } from '../../packages/server/src/engines/chain-hash.ts';
import type { LoggedEntry, Position } from '../../packages/server/src/engines/log-engine.ts';
import { clockErrorMax, expirySlackMs } from '../leases/expiry-bound.ts';
import type { Violations } from '../world/violations.ts';
import { DiskHistory } from './disk-history.ts';

/** What a start of the server knows about its disk. */
export interface DiskTrust {
  /** Whether an acknowledged write of the disk was ever lost or landed elsewhere. */
  readonly hasLostWrites: boolean;
  /** Whether the disk ever returned or kept other bytes than were written. */
  readonly hasLied: boolean;
  /** Whether an operation failed during this start. */
  readonly hasFailed: boolean;
}

interface KnownLease {
  readonly ttlMs: number;
  /** When the last acknowledged grant or renewal was requested. */
  readonly renewedMs: number;
}

/**
 * Judges one server on one disk: D1 (what was acknowledged is there after each start, or damage is reported), D2 (a
 * second start finds what the first one found), D3 (the state from snapshot and tail is the state from all entries), D4
 * (nothing is acknowledged after a failed write), L1 and L7 across restarts, A5 for the revision of a reply.
 */
export class DiskChecker {
  readonly #violations: Violations;
  readonly #nowMs: () => number;
  readonly #history = new DiskHistory();
  readonly #leases = new Map<bigint, KnownLease>();
  /** The append whose outcome no process has learned. */
  #inFlight: { readonly batch: readonly Uint8Array[]; readonly beganMs: number } | undefined;
  #hasAppended = false;

  constructor(violations: Violations, nowMs: () => number) {
    this.#violations = violations;
    this.#nowMs = nowMs;
  }

  get end(): Position {
    return this.#history.end;
  }

  appendBegun(batch: readonly Uint8Array[]): void {
    this.#inFlight = { batch: batch.map((entry) => Buffer.from(entry)), beganMs: this.#nowMs() };
  }

  /** The engine has acknowledged the append in flight. `isTrusted`: no write to the log has failed in this process. */
  appended(isTrusted: boolean): void {
    if (!isTrusted) this.#violations.report('D4', 'an append was acknowledged although a write to the log had failed');
    if (this.#inFlight !== undefined) this.#add(this.#inFlight);
    this.#hasAppended = true;
  }

  /** A client has the reply to a write. */
  acknowledged(revision: number): void {
    const { currentRevision } = this.#history.state;
    if (revision > currentRevision) {
      this.#violations.report(
        'A5',
        `revision ${revision} was answered, and the log ends with revision ${currentRevision}`,
      );
    }
  }

  /** A grant or a renewal was acknowledged. */
  renewed(id: bigint, ttlMs: number, requestedMs: number): void {
    const renewedMs = Math.max(requestedMs, this.#leases.get(id)?.renewedMs ?? 0);
    this.#leases.set(id, { ttlMs, renewedMs });
  }

  /** The engine has opened the log. Returns whether its end could be compared. */
  opened(tail: Position, entries: readonly LoggedEntry[], trust: DiskTrust): void {
    const { end } = this.#history;
    if (tail.index < end.index) this.#lost(tail, trust);
    else this.#found(entries);
    this.#inFlight = undefined;
    this.#hasAppended = false;
  }

  /** A server has recovered this state, and has appended nothing since. */
  recovered(state: StateMachine): void {
    const { state: replayed } = this.#history;
    if (state.appliedIndex !== replayed.appliedIndex) {
      this.#violations.report(
        'D3',
        `the state is of entry ${state.appliedIndex}, the log ends with ${replayed.appliedIndex}`,
      );
    } else if (state.stateHash() !== replayed.stateHash()) {
      this.#violations.report(
        'D3',
        `snapshot and tail give another state of entry ${state.appliedIndex} than all entries`,
      );
    }
  }

  /** The server refused to start. */
  refused(code: string, message: string, trust: DiskTrust): void {
    if (code === 'damaged' ? trust.hasLied : trust.hasFailed) return;
    const disk = trust.hasLied ? 'a disk that lies' : 'an honest disk';
    this.#violations.report('D1', `the server does not run on ${disk}: ${code}: ${message}`);
  }

  /** No lease was renewed since the last start at `startedMs`, on a healthy disk. */
  quiet(state: StateMachine, startedMs: number): void {
    for (const { id, ttlMs } of state.leases()) {
      const lateMs = this.#nowMs() - startedMs - ttlMs / (1 - clockErrorMax) - expirySlackMs;
      if (lateMs > 0)
        this.#violations.report('L7', `lease ${id} still exists, ${Math.round(lateMs)} ms after its bound`);
    }
  }

  #add({ batch, beganMs }: { readonly batch: readonly Uint8Array[]; readonly beganMs: number }): void {
    let { index, hash } = this.#history.end;
    const entries = batch.map((bytes) => {
      hash = chainHash(hash, bytes);
      return { position: { index: ++index, hash }, bytes };
    });
    this.#inFlight = undefined;
    for (const change of this.#history.add(entries)) {
      if (change.kind !== 'removed') continue;
      const lease = this.#leases.get(change.id);
      this.#leases.delete(change.id);
      if (change.cause !== 'expired' || lease === undefined) continue;
      const earlyMs = lease.renewedMs + lease.ttlMs * (1 - clockErrorMax) - beganMs;
      if (earlyMs > 0) this.#violations.report('L1', `lease ${change.id} expired ${Math.round(earlyMs)} ms early`);
    }
  }

  #lost(tail: Position, { hasLostWrites }: DiskTrust): void {
    const { end, endBeforeLastAppend } = this.#history;
    const rule = this.#hasAppended ? 'D1' : 'D2';
    if (!hasLostWrites || tail.index !== endBeforeLastAppend.index) {
      this.#violations.report(rule, `entries ${tail.index + 1} to ${end.index} were acknowledged and are gone`);
    }
    if (tail.index === endBeforeLastAppend.index) this.#history.forgetLastAppend();
  }

  #found(entries: readonly LoggedEntry[]): void {
    if (entries.length === 0) return;
    const expected = this.#inFlight?.batch ?? [];
    const isInFlight =
      entries.length === expected.length &&
      entries.every(({ bytes }, at) => Buffer.compare(bytes, expected[at]!) === 0);
    if (isInFlight) return this.#add(this.#inFlight!);
    const first = entries[0]!.position.index;
    this.#violations.report('D2', `${entries.length} entries from ${first} on were found which no process was writing`);
    this.#history.add(entries);
  }
}
