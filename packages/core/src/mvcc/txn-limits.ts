/**
 * Limits on the work of one transaction on every server, independent of the stored data. Ranges, comparisons and
 * deletes of a transaction that writes are evaluated within apply, on each server and at each replay, so the limits are
 * part of the state: an entry of the log sets them, and servers of two versions agree.
 */
export interface TxnLimits {
  /** Keys scanned by all comparisons, ranges and deletes, including deleted keys that are still held. */
  readonly maxRows: number;
  /** Bytes of keys and values in the response. */
  readonly maxReplyBytes: number;
  /** Bytes of values compared by its comparisons and sorted ranges. */
  readonly maxComparedBytes: number;
}

/**
 * 50,000 rows take some ten milliseconds, 32 MiB the same to be written into a response, and 16 MiB to be compared: see
 * docs/decisions/021-limits-of-a-transaction.md.
 */
export const defaultTxnLimits: TxnLimits = Object.freeze({
  maxRows: 50_000,
  maxReplyBytes: 32 * 1024 * 1024,
  maxComparedBytes: 16 * 1024 * 1024,
});

/** For a log that began before limits existed. */
export const noTxnLimits: TxnLimits = Object.freeze({
  maxRows: Infinity,
  maxReplyBytes: Infinity,
  maxComparedBytes: Infinity,
});

const noPuts: ReadonlyMap<string, number> = new Map();

/** Counts the cost of one transaction against its limits. */
export class TxnCost {
  readonly #limits: TxnLimits;
  #rows = 0;
  #bytes = 0;
  #comparedBytes = 0;
  /** The keys put by the ops before the current one, and the sizes of their values. */
  #puts: Map<string, number> | undefined;

  constructor(limits: TxnLimits) {
    this.#limits = limits;
  }

  get isLimited(): boolean {
    return this.#limits.maxRows !== Infinity;
  }

  get rows(): number {
    return this.#rows;
  }

  get isExceeded(): boolean {
    const { maxRows, maxReplyBytes, maxComparedBytes } = this.#limits;
    return this.#rows > maxRows || this.#bytes > maxReplyBytes || this.#comparedBytes > maxComparedBytes;
  }

  /** Counts one row. Returns whether another row may be scanned. */
  addRow(): boolean {
    this.#rows += 1;
    return this.#rows <= this.#limits.maxRows;
  }

  addReplyBytes(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Returns whether more bytes may be compared. */
  addComparedBytes(bytes: number): boolean {
    this.#comparedBytes += bytes;
    return this.#comparedBytes <= this.#limits.maxComparedBytes;
  }

  addPut(key: string, valueBytes: number): void {
    this.#puts ??= new Map();
    this.#puts.set(key, valueBytes);
  }

  get puts(): ReadonlyMap<string, number> {
    return this.#puts ?? noPuts;
  }
}
