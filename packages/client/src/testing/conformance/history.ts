import type { Claim, Entry, EntryKey, EnterOptions, LeaseBackend, Renewal } from '../../backend/lease-backend.ts';
import type { Signal } from '../../time/signal.ts';

/** A read of a queue. The answer is the state at some moment between the two times. */
export interface ListRead {
  readonly name: string;
  readonly sentMs: number;
  readonly answeredMs: number;
  readonly entries: readonly Entry[];
}

/** A call on an entry. `isDone` is undefined when the outcome is unknown. */
export interface Operation {
  readonly kind: 'renew' | 'leave' | 'update';
  readonly sentMs: number;
  /** Infinity when no answer came. */
  readonly answeredMs: number;
  readonly isDone: boolean | undefined;
  /** Of a renewal. */
  readonly ttlMs: number;
  /** Of an update. */
  readonly data: string;
}

/** All that is known of one claim. */
export interface ClaimRecord {
  readonly claim: Claim;
  readonly sentMs: number;
  /** Infinity when no answer came. */
  readonly answeredMs: number;
  /** Undefined when it was not entered, or when the outcome is unknown. */
  readonly sequence: bigint | undefined;
  readonly operations: Operation[];
}

/** Calls backends and writes down what was asked and answered, and when. Times are of this process's one clock. */
export class History {
  readonly reads: ListRead[] = [];
  readonly records: ClaimRecord[] = [];
  readonly #byId = new Map<string, ClaimRecord>();

  /** The key of the entry, or undefined when it was not entered. */
  async enter(backend: LeaseBackend, claim: Claim, options: EnterOptions): Promise<EntryKey | undefined> {
    const sentMs = performance.now();
    const record = { claim, sentMs, answeredMs: Infinity, sequence: undefined as bigint | undefined, operations: [] };
    this.records.push(record);
    this.#byId.set(claim.id, record);
    const { sequence, entries } = await backend.enter(claim, options);
    record.answeredMs = performance.now();
    record.sequence = sequence;
    this.reads.push({ name: claim.name, sentMs, answeredMs: record.answeredMs, entries });
    return sequence === undefined ? undefined : { name: claim.name, id: claim.id, sequence };
  }

  async list(backend: LeaseBackend, name: string, signal: Signal): Promise<readonly Entry[]> {
    const sentMs = performance.now();
    const entries = await backend.list(name, signal);
    this.reads.push({ name, sentMs, answeredMs: performance.now(), entries });
    return entries;
  }

  async renew(backend: LeaseBackend, renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    const done = renewals.map(({ id, ttlMs }) => this.#begin(id, 'renew', { ttlMs, data: '' }));
    const flags = await backend.renew(renewals, signal);
    for (const [at, end] of done.entries()) end(flags[at]);
    return flags;
  }

  async leave(backend: LeaseBackend, key: EntryKey, signal: Signal): Promise<boolean> {
    const end = this.#begin(key.id, 'leave', { ttlMs: 0, data: '' });
    return end(await backend.leave(key, signal)) === true;
  }

  async update(backend: LeaseBackend, key: EntryKey, data: string, signal: Signal): Promise<boolean> {
    const end = this.#begin(key.id, 'update', { ttlMs: 0, data });
    return end(await backend.update(key, data, signal)) === true;
  }

  #begin(id: string, kind: Operation['kind'], what: Pick<Operation, 'ttlMs' | 'data'>) {
    const record = this.#byId.get(id);
    if (record === undefined) throw new Error(`${id} never entered`);
    const at = record.operations.length;
    const operation: Operation = { kind, sentMs: performance.now(), answeredMs: Infinity, isDone: undefined, ...what };
    record.operations.push(operation);
    return (isDone: boolean | undefined): boolean | undefined => {
      record.operations[at] = { ...operation, answeredMs: performance.now(), isDone };
      return isDone;
    };
  }
}
