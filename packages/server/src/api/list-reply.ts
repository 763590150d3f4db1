import { encodeList, type ListMessage, SlicedReply } from '@tenure/codec';
import type { WorkStep } from './sliced-work.ts';
import { type LargeReply, type Reply, smallReplyBytes } from '../transport/transport.ts';

/** Items that one step measures. */
const itemsAStep = 1_000;
/** A reply that waits to be sent holds a place in an array for each item. */
const heldBytesPerItem = 8;

/** What a list is made of, collected in steps. */
export interface Collection<Item> {
  /** Returns whether all is collected. */
  step(): boolean;
  /** Once `step` has returned true. */
  message(): ListMessage<Item>;
}

/**
 * A long list on its way from its first item to what is sent. Nothing of it is in memory before its first step. It may
 * be made for several callers, each of whom sends it at a pace of its own.
 */
export class ListReply<Item> {
  /** Always the same function, which names the work to those who share it. */
  readonly step: WorkStep = () => this.#step();
  readonly #begin: () => Collection<Item>;
  #collection: Collection<Item> | undefined;
  #message: ListMessage<Item> | undefined;
  #measured: SlicedReply<Item> | undefined;

  constructor(begin: () => Collection<Item>) {
    this.#begin = begin;
  }

  /** Once `step` has returned true. */
  answer(): Reply {
    const [message, measured] = [this.#message!, this.#measured!];
    return measured.framedBytes <= smallReplyBytes ? encodeList(message) : largeReply(measured.copy());
  }

  #step(): boolean {
    if (this.#measured !== undefined) return this.#measured.measure(itemsAStep);
    this.#collection ??= this.#begin();
    if (!this.#collection.step()) return false;
    this.#message = this.#collection.message();
    this.#measured = new SlicedReply(this.#message);
    this.#collection = undefined;
    return this.#measured.measure(itemsAStep);
  }
}

/** Of a list that has been measured. */
export function largeReply<Item>(reply: SlicedReply<Item>): LargeReply {
  return {
    heldBytes: reply.items * heldBytesPerItem,
    within: (roomBytes) => (reply.framedBytes > roomBytes ? reply.framedBytes : reply),
  };
}
