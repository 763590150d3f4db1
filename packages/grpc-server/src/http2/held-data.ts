/** What the first bytes are given room for: a stream that is paused for a moment holds little. */
const firstBlockBytes = 256;
const maxBlockBytes = 16_384;

/**
 * Data that a paused stream holds, in blocks that fill up: a client that sends single bytes costs twice their number,
 * and not an object for each.
 */
export class HeldData {
  bytes = 0;
  #blocks: Buffer[] = [];
  /** How much of the last block is filled. */
  #filledBytes = 0;

  push(source: Buffer, start: number, end: number): void {
    this.bytes += end - start;
    let from = start;
    while (from < end) {
      const last = this.#roomFor(end - from);
      const count = Math.min(end - from, last.length - this.#filledBytes);
      source.copy(last, this.#filledBytes, from, from + count);
      this.#filledBytes += count;
      from += count;
    }
  }

  /** The next bytes, which are held no more; undefined when there are none. */
  shift(): Buffer | undefined {
    const block = this.#blocks.shift();
    if (block === undefined) return undefined;
    const taken = this.#blocks.length === 0 ? block.subarray(0, this.#filledBytes) : block;
    if (this.#blocks.length === 0) this.#filledBytes = 0;
    this.bytes -= taken.length;
    return taken;
  }

  clear(): void {
    this.#blocks = [];
    this.#filledBytes = 0;
    this.bytes = 0;
  }

  /** The last block, with room for at least one byte. */
  #roomFor(count: number): Buffer {
    const last = this.#blocks.at(-1);
    if (last !== undefined && this.#filledBytes < last.length) return last;
    const wanted = last === undefined ? Math.max(firstBlockBytes, count) : Math.max(2 * last.length, count);
    const block = Buffer.allocUnsafeSlow(Math.min(wanted, maxBlockBytes));
    this.#blocks.push(block);
    this.#filledBytes = 0;
    return block;
  }
}
