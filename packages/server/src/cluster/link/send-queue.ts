import type { Clock } from '../../time/clock.ts';

/** Limits on the size of one message. */
export interface MessageBound<Item> {
  /** The approximate size of an item in a message. */
  readonly bytesOf: (item: Item) => number;
  /** A message holds no more bytes than this, except that it holds at least one item. */
  readonly maxBytes: number;
}

/**
 * A queue of items for a stream that takes one message at a time. The items added during a turn of the event loop, or
 * while the stream was full, are sent as one message, or as few as the other side's limit allows.
 */
export class SendQueue<Item> {
  readonly #clock: Clock;
  readonly #send: (items: readonly Item[]) => boolean;
  readonly #bound: MessageBound<Item> | undefined;
  #items: Item[] = [];
  #scheduled = false;
  #full = false;

  /** `send` returns false when the stream is full. It is then called again only after `drained`. */
  constructor(clock: Clock, send: (items: readonly Item[]) => boolean, bound?: MessageBound<Item>) {
    this.#clock = clock;
    this.#send = send;
    this.#bound = bound;
  }

  /** Items that wait. */
  get size(): number {
    return this.#items.length;
  }

  /** Whether the stream is full: `drained` will be called. */
  get isFull(): boolean {
    return this.#full;
  }

  put(item: Item): void {
    this.#items.push(item);
    this.#schedule();
  }

  drained(): void {
    this.#full = false;
    if (this.#items.length > 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#full) return;
    this.#scheduled = true;
    this.#clock.soon(() => {
      this.#scheduled = false;
      const items = this.#items;
      let from = 0;
      while (from < items.length && !this.#full) {
        const to = this.#endOfMessage(items, from);
        this.#full = !this.#send(items.slice(from, to));
        from = to;
      }
      this.#items = items.slice(from);
    });
  }

  #endOfMessage(items: readonly Item[], from: number): number {
    if (this.#bound === undefined) return items.length;
    const { bytesOf, maxBytes } = this.#bound;
    let bytes = 0;
    for (let at = from; at < items.length; at += 1) {
      bytes += bytesOf(items[at] as Item);
      if (bytes > maxBytes && at > from) return at;
    }
    return items.length;
  }
}
