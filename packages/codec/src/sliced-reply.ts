import { frameHeadroomBytes } from './frame.ts';

/** How the message of a long list is written: the fields before the items, each item, the fields after them. */
export interface ListMessage<Item> {
  readonly items: readonly Item[];
  readonly itemSize: (item: Item) => number;
  readonly writeItem: (out: Buffer, at: number, item: Item) => number;
  /** In bytes. */
  readonly headSize: number;
  readonly tailSize: number;
  readonly writeHead: (out: Buffer, at: number) => number;
  readonly writeTail: (out: Buffer, at: number) => number;
}

/** A piece is full at this size; one with a single large item is larger. */
const fullPieceBytes = 64 * 1024;

/**
 * A reply that may have millions of items. It is measured in slices, so that other requests are served between them,
 * and then written piece by piece, each when the previous one has been sent: so only one piece is in memory at a time.
 */
export class SlicedReply<Item> {
  readonly #message: ListMessage<Item>;
  readonly #pieceBytes: number;
  #size: number;
  #measured = 0;
  #written = 0;
  #hasHead = false;

  constructor(message: ListMessage<Item>, pieceBytes = fullPieceBytes) {
    this.#message = message;
    this.#pieceBytes = pieceBytes;
    this.#size = frameHeadroomBytes + message.headSize + message.tailSize;
  }

  get items(): number {
    return this.#message.items.length;
  }

  /** Of the whole reply, headroom included. Valid once `measure` has returned true. */
  get framedBytes(): number {
    return this.#size;
  }

  /** Measures about this many items. Returns whether all are measured. */
  measure(maxItems: number): boolean {
    const { items } = this.#message;
    const end = Math.min(items.length, this.#measured + maxItems);
    for (let at = this.#measured; at < end; at++) this.#size += this.#message.itemSize(items[at]!);
    this.#measured = end;
    return end === items.length;
  }

  /** The same reply, measured as far as this one, for another client. */
  copy(): SlicedReply<Item> {
    const copy = new SlicedReply(this.#message, this.#pieceBytes);
    copy.#size = this.#size;
    copy.#measured = this.#measured;
    return copy;
  }

  /** The next piece, with headroom before the first. Must not be called once all bytes were returned. */
  nextPiece(): Buffer {
    const { items, itemSize, headSize, tailSize } = this.#message;
    let size = this.#hasHead ? 0 : frameHeadroomBytes + headSize;
    let end = this.#written;
    while (end < items.length && size < this.#pieceBytes) size += itemSize(items[end++]!);
    const isLast = end === items.length;
    const out = Buffer.allocUnsafe(isLast ? size + tailSize : size);
    let at = this.#hasHead ? 0 : this.#message.writeHead(out, frameHeadroomBytes);
    this.#hasHead = true;
    for (; this.#written < end; this.#written++) at = this.#message.writeItem(out, at, items[this.#written]!);
    if (isLast) this.#message.writeTail(out, at);
    return out;
  }
}

/** The whole reply at once, for a short list. After the headroom, ready to be framed. */
export function encodeList<Item>(message: ListMessage<Item>): Buffer {
  return new SlicedReply(message, Infinity).nextPiece();
}
