import { allocateFrame, frameHeadroomBytes } from './frame.ts';

/** How the message of a long list is written: what stands before the items, each item, what stands behind them. */
export interface ListMessage<Item> {
  readonly items: readonly Item[];
  itemSize(item: Item): number;
  writeItem(out: Buffer, at: number, item: Item): number;
  /** In bytes, of all that is no item. */
  readonly frameSize: number;
  writeHead(out: Buffer, at: number): number;
  writeTail(out: Buffer, at: number): number;
}

/** What an item counts for beside its bytes: a list of small ones takes time, too. */
const itemCost = 64;

/**
 * Writes a reply that may have millions of items in slices, so that others are served between them. First `measure`
 * until it returns true, then `write` until it does: between them the size is known, and no memory has been taken.
 */
export class SlicedReply<Item = unknown> {
  readonly #message: ListMessage<Item>;
  #size: number;
  #measured = 0;
  #out: Buffer | undefined;
  #at = frameHeadroomBytes;
  #written = 0;

  constructor(message: ListMessage<Item>) {
    this.#message = message;
    this.#size = message.frameSize;
  }

  /** In bytes, with headroom. Once `measure` has returned true. */
  get framedBytes(): number {
    return frameHeadroomBytes + this.#size;
  }

  /** Measures about `cost / 64` items. Returns whether all are measured. */
  measure(cost: number): boolean {
    const { items } = this.#message;
    const end = Math.min(items.length, this.#measured + Math.ceil(cost / itemCost));
    for (let at = this.#measured; at < end; at++) this.#size += this.#message.itemSize(items[at]!);
    this.#measured = end;
    return end === items.length;
  }

  /** Writes about `cost` bytes. Returns whether all is written. */
  write(cost: number): boolean {
    const { items } = this.#message;
    if (this.#out === undefined) {
      this.#out = allocateFrame(this.#size);
      this.#at = this.#message.writeHead(this.#out, this.#at);
    }
    for (let left = cost; left > 0 && this.#written < items.length; this.#written++) {
      const before = this.#at;
      this.#at = this.#message.writeItem(this.#out, before, items[this.#written]!);
      left -= itemCost + this.#at - before;
    }
    if (this.#written < items.length) return false;
    this.#message.writeTail(this.#out, this.#at);
    return true;
  }

  /** Behind headroom, ready to be framed. Once `write` has returned true. */
  get framed(): Buffer {
    if (this.#out === undefined) throw new Error('a reply is handed out before it was written');
    return this.#out;
  }
}

/** The whole reply at once, for a list that is short. */
export function encodeList<Item>(message: ListMessage<Item>): Buffer {
  const reply = new SlicedReply(message);
  reply.measure(Infinity);
  reply.write(Infinity);
  return reply.framed;
}
