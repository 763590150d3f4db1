import type { Clock } from '../time/clock.ts';

/** How much goes into one message. */
export interface MessageBound<Item> {
  /** About as many bytes as the item takes in a message. */
  readonly bytesOf: (item: Item) => number;
  /** A message holds no more than this, except that it holds at least one item. */
  readonly maxBytes: number;
}

/**
 * What is to be said over a stream that takes one message at a time: all that was put in during a turn of the event
 * loop, and while the stream was full, goes out as one, or as few as the other side takes.
 */
export class Outbox<Item> {
  readonly #clock: Clock;
  readonly #send: (items: readonly Item[]) => boolean;
  readonly #bound: MessageBound<Item> | undefined;
  #items: Item[] = [];
  #scheduled = false;
  #full = false;

  /** `send` returns false when the stream is full: then `drained` has to be called before it is used again. */
  constructor(clock: Clock, send: (items: readonly Item[]) => boolean, bound?: MessageBound<Item>) {
    this.#clock = clock;
    this.#send = send;
    this.#bound = bound;
  }

  /** Items that wait. */
  get size(): number {
    return this.#items.length;
  }

  /** Whether the stream takes no more now: `drained` will be called. */
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
