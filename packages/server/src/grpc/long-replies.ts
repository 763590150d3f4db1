import { hasInterval, type RangeRequest, type RangeResult, type StateMachine, type TxnRequest } from '@tenure/core';
import { encodeList, type ListMessage, SlicedReply } from '@tenure/protocol';
import { statusOfCoreError } from './status-of.ts';
import { SlicedWork, type WorkStep } from './sliced-work.ts';
import { type LargeReply, type Reply, smallReplyBytes } from './transport/transport.ts';

/** Keys that a request looks at before it goes on in slices, which takes up to half a millisecond. */
const rowsAtOnce = 2_000;
/** Keys that one step of a slice looks at, and items that it measures. */
const rowsAStep = 1_000;
/** A reply that waits to be sent holds a place in an array for each item. */
const heldBytesPerItem = 8;

/**
 * Reads and measures what may have millions of keys or leases. What is short is answered at once; for the rest the
 * event loop is held for a slice at a time, however long it takes, and the reply is made piece by piece as it is sent.
 */
export class LongReplies {
  readonly #work = new SlicedWork();

  /** Reads the range, then answers with the list that `message` makes of it. Throws or rejects with GrpcStatus. */
  range<Item>(
    state: StateMachine,
    request: RangeRequest,
    message: (result: RangeResult) => ListMessage<Item>,
  ): Reply | Promise<Reply> {
    const scan = state.beginScan(request);
    if ('kind' in scan) throw statusOfCoreError(scan);
    if (scan.step(rowsAtOnce)) return this.list(message(scan.result));
    const unpin = state.pin(scan.revision);
    return this.#work
      .run(() => scan.step(rowsAStep))
      .finally(unpin)
      .then(() => this.list(message(scan.result)));
  }

  /**
   * Evaluates a transaction in one step, since what it reads is of one moment; its limits bound that step. One that
   * looks at many keys waits for its turn, so that many of them do not come in the same turn of the event loop.
   */
  txn<Result>(state: StateMachine, txn: TxnRequest, evaluate: () => Result): Result | Promise<Result> {
    if (!hasInterval(txn) || state.countRows({ kind: 'txn', txn }, rowsAtOnce) < rowsAtOnce) return evaluate();
    let result: Result;
    const step = (): boolean => {
      result = evaluate();
      return true;
    };
    return this.#work.run(step).then(() => result);
  }

  /** Collects what it takes to make a list, step by step, and answers with it. */
  collected<Item>(step: WorkStep, message: () => ListMessage<Item>): Reply | Promise<Reply> {
    if (step()) return this.list(message());
    return this.#work.run(step).then(() => this.list(message()));
  }

  /** Answers with a list. */
  list<Item>(message: ListMessage<Item>): Reply | Promise<Reply> {
    const reply = new SlicedReply(message);
    if (!reply.measure(rowsAtOnce)) {
      return this.#work.run(() => reply.measure(rowsAStep)).then(() => largeReply(reply));
    }
    return reply.framedBytes <= smallReplyBytes ? encodeList(message) : largeReply(reply);
  }
}

function largeReply<Item>(reply: SlicedReply<Item>): LargeReply {
  return {
    heldBytes: reply.items * heldBytesPerItem,
    within: (roomBytes) => (reply.framedBytes > roomBytes ? reply.framedBytes : reply),
  };
}
