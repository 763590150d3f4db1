import type { Clock } from '../time/clock.ts';
import { type AuditRecord, type AuditSink, type SuppressedRecords, suppressedClasses } from './audit-record.ts';

/** Records of each class that are written in a window; more are counted. */
export const maxStrangerRecords = 60;
/** It begins with the first record. */
export const strangerWindowMs = 60_000;

/**
 * The records of callers without an identity, who could fill the disk and crowd out the records of users: so many a
 * minute, and the number of the others when the minute is over.
 */
export class StrangerRecords {
  readonly #sink: AuditSink;
  readonly #clock: Clock;
  /** By class; empty outside a window. */
  readonly #counts = new Map<SuppressedRecords['method'], number>();
  #cancelEnd: (() => void) | undefined;
  #isStopped = false;

  constructor(sink: AuditSink, clock: Clock) {
    this.#sink = sink;
    this.#clock = clock;
  }

  record(record: AuditRecord): void {
    if (this.#isStopped) return;
    this.#cancelEnd ??= this.#clock.after(strangerWindowMs, () => this.#endWindow());
    const method = suppressedClasses.find((each) => each === record.method) ?? '*';
    const count = (this.#counts.get(method) ?? 0) + 1;
    this.#counts.set(method, count);
    if (count <= maxStrangerRecords) this.#sink.record(record);
  }

  /** Writes what was counted. Later records are dropped. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelEnd?.();
    this.#endWindow();
  }

  #endWindow(): void {
    this.#cancelEnd = undefined;
    for (const [method, count] of this.#counts) {
      const suppressed = count - maxStrangerRecords;
      if (suppressed > 0) this.#sink.record({ method, by: '', suppressed });
    }
    this.#counts.clear();
  }
}
