import { encodeList, type ListMessage, SlicedReply } from '@tenure/codec';
import type { WorkStep } from './sliced-work.ts';
import { type LargeReply, type Reply, smallReplyBytes } from '@tenure/grpc-server';

/** Items measured by one step. */
const itemsAStep = 1_000;
/** A queued reply holds an array slot for each item. */
const heldBytesPerItem = 8;

/** The items of a list, collected in steps. */
export interface Collection<Item> {
  /** Returns whether all is collected. */
  step(): boolean;
  /** Once `step` has returned true. */
  message(): ListMessage<Item>;
}

/**
 * A long list, from collection to sending. It takes no memory before its first step. It may be built for several
 * callers, each of which sends it at its own pace.
 */
export class ListReply<Item> {
  /** Always the same function, which identifies the work for callers that share it. */
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

/** Of a measured list. */
export function largeReply<Item>(reply: SlicedReply<Item>): LargeReply {
  return {
    heldBytes: reply.items * heldBytesPerItem,
    within: (roomBytes) => (reply.framedBytes > roomBytes ? reply.framedBytes : reply),
  };
}
