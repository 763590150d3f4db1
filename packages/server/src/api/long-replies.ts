import { hasInterval, type RangeRequest, type RangeResult, type StateMachine, type TxnRequest } from '@tenure/core';
import { encodeList, type ListMessage, SlicedReply } from '@tenure/codec';
import { type Collection, largeReply, ListReply } from './list-reply.ts';
import { statusOfCoreError } from './status-of.ts';
import type { Caller, SlicedWork } from './sliced-work.ts';
import { type Reply, smallReplyBytes } from '@tenure/grpc-server';

/** Keys that a request scans before it continues in slices, which takes up to half a millisecond. */
const rowsAtOnce = 2_000;
/** Keys scanned by one step of a slice, and items measured by it. */
const rowsAStep = 1_000;

/**
 * Reads and measures ranges and lists that may have millions of keys or leases. A short one is answered at once; for a
 * long one the event loop is held for a slice at a time, and the reply is built piece by piece as it is sent.
 */
export class LongReplies {
  readonly #work: SlicedWork;

  constructor(work: SlicedWork) {
    this.#work = work;
  }

  /** Reads the range, then responds with the list that `message` makes of it. Throws or rejects with GrpcStatus. */
  range<Item>(
    state: StateMachine,
    request: RangeRequest,
    message: (result: RangeResult) => ListMessage<Item>,
    caller: Caller,
  ): Reply | Promise<Reply> {
    const scan = state.beginScan(request);
    if ('kind' in scan) throw statusOfCoreError(scan);
    if (scan.step(rowsAtOnce)) return this.list(message(scan.result), caller);
    const unpin = state.pin(scan.revision);
    const rest: Collection<Item> = { step: () => scan.step(rowsAStep), message: () => message(scan.result) };
    return this.make(new ListReply(() => rest), caller).finally(unpin);
  }

  /** Whether the transaction scans so many keys that it has to wait for its turn. */
  isLong(state: StateMachine, txn: TxnRequest): boolean {
    return hasInterval(txn) && state.countRows({ kind: 'txn', txn }, rowsAtOnce) >= rowsAtOnce;
  }

  /**
   * Evaluates a long transaction in one step, since it reads one state; its limits bound that step. It waits for its
   * turn, so that many of them do not run in the same turn of the event loop.
   */
  inTurn<Result>(evaluate: () => Result, caller: Caller): Promise<Result> {
    let result: Result;
    const step = (): boolean => {
      result = evaluate();
      return true;
    };
    return this.#work.run(step, caller).then(() => result);
  }

  /** Collects the items of a list, the first step at once, and responds with it. */
  collected<Item>(collection: Collection<Item>, caller: Caller): Reply | Promise<Reply> {
    if (collection.step()) return this.list(collection.message(), caller);
    return this.make(new ListReply(() => collection), caller);
  }

  /** Builds the list when its turn comes, once for all callers of the same list. */
  make<Item>(reply: ListReply<Item>, caller: Caller): Promise<Reply> {
    return this.#work.run(reply.step, caller).then(() => reply.answer());
  }

  /** Responds with a finished list: completed work is never refused. */
  list<Item>(message: ListMessage<Item>, caller: Caller): Reply | Promise<Reply> {
    const reply = new SlicedReply(message);
    if (!reply.measure(rowsAtOnce)) {
      return this.#work.run(() => reply.measure(rowsAStep), caller, true).then(() => largeReply(reply));
    }
    return reply.framedBytes <= smallReplyBytes ? encodeList(message) : largeReply(reply);
  }
}
