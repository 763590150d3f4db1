import { IdIndex } from './id-index.ts';
import { trackedStates, type TrackedLease, type TrackedState } from './tracked-lease.ts';

/** Rows per chunk. The table grows by chunks, without copying a row. */
const chunkShift = 14;
const chunkRows = 1 << chunkShift;
const rowMask = chunkRows - 1;

/** A row is five adjacent words of eight bytes, so that a renewal finds everything in one place. */
const rowWords = 5;
const deadlineWord = 1;
const ttlWord = 2;
const stateWord = 3;
const renewIndexWord = 4;

/** One block of memory, viewed as ids and as numbers. */
interface Chunk {
  readonly ids: BigInt64Array;
  readonly numbers: Float64Array;
}

/**
 * All leases that a leader tracks, each in a row of typed arrays. A million leases are a few large blocks of memory
 * instead of millions of objects, which saves garbage collection and, for a renewal, most cache misses.
 *
 * A row number identifies a lease from `add` to `remove`; then it is reused. The table never shrinks.
 */
export class LeaseTable {
  readonly #index: IdIndex;
  readonly #chunks: Chunk[] = [];
  /** Released rows. The rows from `#unusedRow` on have never been used. */
  readonly #freeRows: number[] = [];
  #unusedRow = 0;

  /** `seed`: see IdIndex. */
  constructor(seed: number) {
    this.#index = new IdIndex(seed);
  }

  get size(): number {
    return this.#index.size;
  }

  /** The row of a lease, or -1. */
  find(id: bigint): number {
    return this.#index.find(id);
  }

  /** Adds a lease whose id is not in the table, and returns its row. */
  add({ id, deadlineMs, ttlMs, state, renewIndex }: TrackedLease): number {
    const row = this.#freeRows.pop() ?? this.#newRow();
    this.#index.add(id, row);
    const chunk = this.#chunk(row);
    const at = (row & rowMask) * rowWords;
    chunk.ids[at] = id;
    chunk.numbers[at + deadlineWord] = deadlineMs;
    chunk.numbers[at + ttlWord] = ttlMs;
    chunk.numbers[at + stateWord] = trackedStates.indexOf(state);
    chunk.numbers[at + renewIndexWord] = renewIndex;
    return row;
  }

  remove(row: number): void {
    this.#index.remove(this.idOf(row));
    this.#freeRows.push(row);
  }

  /** The current lease of a row. */
  lease(row: number): TrackedLease {
    return {
      id: this.idOf(row),
      ttlMs: this.ttlMsOf(row),
      renewIndex: this.renewIndexOf(row),
      deadlineMs: this.deadlineMsOf(row),
      state: this.stateOf(row),
    };
  }

  idOf(row: number): bigint {
    return this.#chunk(row).ids[(row & rowMask) * rowWords] as bigint;
  }

  deadlineMsOf(row: number): number {
    return this.#numberOf(row, deadlineWord);
  }

  ttlMsOf(row: number): number {
    return this.#numberOf(row, ttlWord);
  }

  stateOf(row: number): TrackedState {
    return trackedStates[this.#numberOf(row, stateWord)] as TrackedState;
  }

  renewIndexOf(row: number): number {
    return this.#numberOf(row, renewIndexWord);
  }

  setDeadlineMs(row: number, deadlineMs: number): void {
    this.#chunk(row).numbers[(row & rowMask) * rowWords + deadlineWord] = deadlineMs;
  }

  setState(row: number, state: TrackedState): void {
    this.#chunk(row).numbers[(row & rowMask) * rowWords + stateWord] = trackedStates.indexOf(state);
  }

  setRenewIndex(row: number, renewIndex: number): void {
    this.#chunk(row).numbers[(row & rowMask) * rowWords + renewIndexWord] = renewIndex;
  }

  #chunk(row: number): Chunk {
    return this.#chunks[row >>> chunkShift] as Chunk;
  }

  #numberOf(row: number, word: number): number {
    return this.#chunk(row).numbers[(row & rowMask) * rowWords + word] as number;
  }

  #newRow(): number {
    const row = this.#unusedRow;
    if (row >>> chunkShift === this.#chunks.length) {
      const memory = new ArrayBuffer(chunkRows * rowWords * Float64Array.BYTES_PER_ELEMENT);
      this.#chunks.push({ ids: new BigInt64Array(memory), numbers: new Float64Array(memory) });
    }
    this.#unusedRow += 1;
    return row;
  }
}
