import { frameHeadroomBytes } from './frame.ts';

/** How the message of a long list is written: what stands before the items, each item, what stands behind them. */
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

/** A piece is full when it has so many bytes; one with a single large item has more. */
const fullPieceBytes = 64 * 1024;

/**
 * A reply that may have millions of items. It is measured in slices, so that others are served between them, and then
 * made piece by piece, each when the one before has been sent: so there is never more of it in memory than a piece.
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

  /** Of the whole reply, headroom included. Once `measure` has returned true. */
  get framedBytes(): number {
    return this.#size;
  }

  /** Measures about so many items. Returns whether all are measured. */
  measure(maxItems: number): boolean {
    const { items } = this.#message;
    const end = Math.min(items.length, this.#measured + maxItems);
    for (let at = this.#measured; at < end; at++) this.#size += this.#message.itemSize(items[at]!);
    this.#measured = end;
    return end === items.length;
  }

  /** The same reply, measured as far as this one, to be sent to somebody else. */
  copy(): SlicedReply<Item> {
    const copy = new SlicedReply(this.#message, this.#pieceBytes);
    copy.#size = this.#size;
    copy.#measured = this.#measured;
    return copy;
  }

  /** The next piece, with headroom before the first. Not to be called once all bytes were given. */
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

/** The whole reply at once, for a list that is short. Behind headroom, ready to be framed. */
export function encodeList<Item>(message: ListMessage<Item>): Buffer {
  return new SlicedReply(message, Infinity).nextPiece();
}
