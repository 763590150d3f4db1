import type { Schedule } from '@tenure/test-support';
import type { EntryKey, EntryMode } from '../../packages/client/src/backend/lease-backend.ts';
import type { Hold } from '../../packages/client/src/leases/hold.ts';
import type { Coverage } from '../world/coverage.ts';
import { clockErrorMax } from '../leases/expiry-bound.ts';
import type { Violations } from '../world/violations.ts';
import type { LibraryProcess } from './library-process.ts';

/** What the checker uses of a hold. */
export type CheckedHold = Pick<Hold, 'name' | 'entry' | 'fencingToken' | 'ttlMs' | 'signal' | 'isHeld'>;

export interface Grant {
  readonly hold: CheckedHold;
  readonly process: LibraryProcess;
  readonly mode: EntryMode;
  readonly permits: number;
}

interface ActiveHold extends Grant {
  isReleased: boolean;
  /** The true time of sending of the last enter or renewal whose success arrived in time. */
  sentMs: number;
  /** Until when its process may rely on it, in true time. */
  boundMs: number;
}

/** The entries of the store, in true time. */
export interface StoreTruth {
  has(entry: EntryKey): Promise<boolean> | boolean;
}

interface HoldCheckerOptions {
  readonly schedule: Schedule;
  readonly truth: StoreTruth;
  readonly coverage: Coverage;
  readonly violations: Violations;
}

/** A process that was stopped gets this much time to run what became due meanwhile. */
const wakeMs = 1;

/**
 * Judges holds of the library in true time. K1: one owner at a time, and tokens that increase. K3: no hold without an
 * entry. K4: the signal of a hold aborts by its deadline, counted from the sending of the last success. `order`: a
 * hold's end is signalled before its listeners and its cause.
 */
export class HoldChecker {
  readonly #schedule: Schedule;
  readonly #truth: StoreTruth;
  readonly #coverage: Coverage;
  readonly #violations: Violations;
  /** When the enter of each entry was sent that a process has been told of, by entry id. */
  readonly #entered = new Map<string, number>();
  readonly #active = new Map<string, ActiveHold>();
  readonly #byQueue = new Map<string, Set<ActiveHold>>();
  /** The highest token granted for each queue, and the highest of an exclusive one. */
  readonly #tokens = new Map<string, { highest: bigint; highestExclusive: bigint }>();

  constructor(options: HoldCheckerOptions) {
    this.#schedule = options.schedule;
    this.#truth = options.truth;
    this.#coverage = options.coverage;
    this.#violations = options.violations;
  }

  /** The answer to an enter has arrived. */
  entered(id: string, sentMs: number): void {
    this.#entered.set(id, sentMs);
  }

  /** The answer to a renewal has arrived, and says that the entry is there. */
  renewed(id: string, sentMs: number): void {
    if (this.#entered.has(id)) this.#entered.set(id, Math.max(sentMs, this.#entered.get(id)!));
    const active = this.#active.get(id);
    if (active === undefined) return;
    if (this.#schedule.nowMs > active.boundMs) {
      this.#coverage.count('library: a renewal answered after the deadline');
      this.#schedule.in(wakeMs, () => this.#checkDeadline(active));
      return;
    }
    active.sentMs = Math.max(active.sentMs, sentMs);
    active.boundMs = boundMs(active.sentMs, active.hold.ttlMs);
  }

  /** A call of the library has returned a hold. */
  granted(grant: Grant): void {
    const { hold, process, mode } = grant;
    const { id, name: queue } = hold.entry;
    const sentMs = this.#entered.get(id);
    this.#entered.delete(id);
    if (sentMs === undefined) {
      this.#violations.report('K3', `${process.name} was granted ${queue} with an entry that was never entered`);
      return;
    }
    this.#checkToken(grant);
    const active = { ...grant, isReleased: false, sentMs, boundMs: boundMs(sentMs, hold.ttlMs) };
    const others = this.#byQueue.get(queue) ?? new Set();
    this.#byQueue.set(queue, others);
    this.#checkAlone(active, others);
    others.add(active);
    this.#active.set(id, active);
    void this.#expectEntry(hold.entry, true, `${process.name} was granted ${queue} without an entry`);
    this.#coverage.count(`library: granted ${mode}`);
    this.#watchDeadline(active);
  }

  /** The application has stopped its work, and releases the hold. */
  releasing(id: string): void {
    const active = this.#active.get(id);
    if (active === undefined) return;
    active.isReleased = true;
    this.#forget(active);
  }

  /** A release has returned that its entry was there, and is gone now. */
  released(entry: EntryKey, by: string): void {
    void this.#expectEntry(entry, false, `a release by ${by} returned while its entry was there`);
  }

  /** A listener was told of a loss, or the cause of a loss became known. */
  lossTold(hold: CheckedHold, by: string): void {
    if (!hold.signal.aborted) this.#violations.report('order', `${by} was told of a loss before the signal aborted`);
  }

  /** The process runs again after it was stopped. */
  resumed(process: LibraryProcess): void {
    this.#schedule.in(wakeMs, () => {
      if (process.node.stopped) return;
      for (const active of this.#active.values()) {
        if (active.process !== process || !this.#isOverdue(active)) continue;
        this.#coverage.count('library: a process resumed after the deadline of its hold');
        this.#checkDeadline(active);
      }
    });
  }

  async #expectEntry(entry: EntryKey, isThere: boolean, what: string): Promise<void> {
    if ((await this.#truth.has(entry)) !== isThere) this.#violations.report('K3', what);
  }

  #checkToken({ hold, process, mode }: Grant): void {
    const { fencingToken, entry } = hold;
    const tokens = this.#tokens.get(entry.name) ?? { highest: 0n, highestExclusive: 0n };
    const last = mode === 'exclusive' ? tokens.highest : tokens.highestExclusive;
    if (fencingToken <= last) {
      this.#violations.report(
        'K1',
        `${process.name} was granted ${entry.name} with the token ${fencingToken} after ${last}`,
      );
    }
    const highest = fencingToken > tokens.highest ? fencingToken : tokens.highest;
    this.#tokens.set(entry.name, { highest, highestExclusive: mode === 'exclusive' ? highest : last });
  }

  /** All holds before it that exclude it must have ended for their processes. */
  #checkAlone(granted: ActiveHold, others: ReadonlySet<ActiveHold>): void {
    const { mode, permits, hold, process } = granted;
    const excluding = [...others].filter((other) => {
      if (mode === 'shared' && other.mode === 'shared') return false;
      return !this.#hasEnded(other);
    });
    const most = mode === 'permit' ? permits - 1 : 0;
    if (excluding.length <= most) return;
    const names = excluding.map((other) => `${other.process.name} (token ${other.hold.fencingToken})`);
    const token = `token ${hold.fencingToken}`;
    this.#violations.report(
      'K1',
      `${process.name} (${token}) was granted ${hold.entry.name} beside ${names.join(', ')}`,
    );
  }

  /** A stopped process can't be told. It is judged when it runs again. */
  #hasEnded({ hold, process, isReleased, sentMs }: ActiveHold): boolean {
    if (isReleased || hold.signal.aborted) return true;
    if (process.node.stopped || process.node.awakeMs < wakeMs) return true;
    // Timers stood still during a suspension. A question is answered by both clocks, so at once.
    return process.suspendedAtMs >= sentMs && !hold.isHeld();
  }

  #watchDeadline(active: ActiveHold): void {
    this.#schedule.at(active.boundMs, () => {
      if (!this.#active.has(active.hold.entry.id)) return;
      if (active.hold.signal.aborted) this.#forget(active);
      else if (!this.#isOverdue(active)) this.#watchDeadline(active);
      else this.#checkDeadline(active);
    });
  }

  #isOverdue(active: ActiveHold): boolean {
    return this.#schedule.nowMs >= active.boundMs;
  }

  #checkDeadline(active: ActiveHold): void {
    if (this.#hasEnded(active)) {
      if (active.hold.signal.aborted) this.#forget(active);
      return;
    }
    const lateMs = Math.round(this.#schedule.nowMs - active.boundMs);
    const { name, ttlMs } = active.hold;
    this.#violations.report(
      'K4',
      `${active.process.name} still holds ${name} (${ttlMs} ms), ${lateMs} ms after its deadline`,
    );
    this.#forget(active);
  }

  #forget(active: ActiveHold): void {
    const { id, name } = active.hold.entry;
    this.#active.delete(id);
    this.#byQueue.get(name)?.delete(active);
  }
}

function boundMs(sentMs: number, ttlMs: number): number {
  return sentMs + ttlMs * (1 - clockErrorMax);
}
