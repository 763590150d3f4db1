import type { Clock } from '../time/clock.ts';
import { type AuditRecord, type AuditSink, loginMethod, type RecordClass } from './audit-record.ts';

/** It begins with the first record. */
export const recordWindowMs = 60_000;
/** Records of strangers of each class that are written in a window; more are counted. */
export const maxStrangerRecords = 60;
/** The same for each user: a hundred a second. */
export const maxUserRecords = 6_000;
/** Classes that are counted apart in a window. The records of further ones share a count. */
export const maxRecordClasses = 10_000;

export interface RecordLimit {
  readonly maxRecords: number;
  readonly classOf: (record: AuditRecord) => RecordClass;
}

/** For callers without an identity. Failed logins are apart: no other request hides that passwords are guessed. */
export const strangerLimit: RecordLimit = {
  maxRecords: maxStrangerRecords,
  classOf: ({ method }) => ({ method: method === loginMethod ? method : '*', by: '' }),
};

/** For each user. What was refused, and what is about users and roles, is apart, so that no other request hides it. */
export const userLimit: RecordLimit = {
  maxRecords: maxUserRecords,
  classOf: ({ method, by, allowed }) => ({ method: method.startsWith('Auth/') ? 'Auth/*' : '*', by, allowed }),
};

const sharedClass: RecordClass = { method: '*', by: '' };

interface Count {
  readonly of: RecordClass;
  records: number;
}

/**
 * The records of callers who could fill the disk and crowd out the records of others: so many a minute of each class,
 * and the number of the others when the minute is over.
 */
export class LimitedRecords {
  readonly #sink: AuditSink;
  readonly #clock: Clock;
  readonly #limit: RecordLimit;
  /** By class; empty outside a window. */
  readonly #counts = new Map<string, Count>();
  #cancelEnd: (() => void) | undefined;
  #isStopped = false;

  constructor(sink: AuditSink, clock: Clock, limit: RecordLimit) {
    this.#sink = sink;
    this.#clock = clock;
    this.#limit = limit;
  }

  record(record: AuditRecord): void {
    if (this.#isStopped) return;
    this.#cancelEnd ??= this.#clock.after(recordWindowMs, () => this.#endWindow());
    const count = this.#countOf(this.#limit.classOf(record));
    count.records += 1;
    if (count.records <= this.#limit.maxRecords) this.#sink.record(record);
  }

  /** Writes what was counted. Later records are dropped. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelEnd?.();
    this.#endWindow();
  }

  #countOf(of: RecordClass): Count {
    const key = keyOf(of);
    const known = this.#counts.get(key);
    if (known !== undefined) return known;
    if (this.#counts.size >= maxRecordClasses && of !== sharedClass) return this.#countOf(sharedClass);
    const count = { of, records: 0 };
    this.#counts.set(key, count);
    return count;
  }

  #endWindow(): void {
    this.#cancelEnd = undefined;
    for (const { of, records } of this.#counts.values()) {
      const suppressed = records - this.#limit.maxRecords;
      if (suppressed > 0) this.#sink.record({ ...of, suppressed });
    }
    this.#counts.clear();
  }
}

/** The name of a user may contain anything, and is last. */
function keyOf({ method, by, allowed }: RecordClass): string {
  return `${method} ${allowed} ${by}`;
}
