import { hasInterval, type RangeRequest, type RangeResult, type StateMachine, type TxnRequest } from '@tenure/core';
import { type ListMessage, SlicedReply } from '@tenure/protocol';
import { statusOfCoreError } from './status-of.ts';
import { SlicedWork, type WorkStep } from './sliced-work.ts';
import { GrpcCode, GrpcStatus } from './transport/grpc-status.ts';

/** Keys that a range looks at before it goes on in slices, which takes up to half a millisecond. */
const rowsAtOnce = 2_000;
/** Keys that one step of a slice looks at. */
const rowsAStep = 1_000;
/** Bytes of a reply that are written before it goes on in slices, and that one step of a slice writes. */
const bytesAtOnce = 256 * 1024;
/** etcd's is 2 GiB; a reply is built as a whole here. */
const maxReplyBytes = 512 * 1024 * 1024;

/**
 * Reads and writes what may have millions of keys or leases. What is short is answered at once; for the rest the event
 * loop is held for a slice at a time, however long it takes.
 */
export class LongReplies {
  readonly #work = new SlicedWork();

  /** Reads the range, then answers with the list that `message` makes of it. Throws or rejects with GrpcStatus. */
  range(
    state: StateMachine,
    request: RangeRequest,
    message: (result: RangeResult) => ListMessage<unknown>,
  ): Buffer | Promise<Buffer> {
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
  collected(step: WorkStep, message: () => ListMessage<unknown>): Buffer | Promise<Buffer> {
    if (step()) return this.list(message());
    return this.#work.run(step).then(() => this.list(message()));
  }

  /** Answers with a list. */
  list(message: ListMessage<unknown>): Buffer | Promise<Buffer> {
    const reply = new SlicedReply(message);
    if (reply.measure(bytesAtOnce)) {
      checkSize(reply.framedBytes);
      if (reply.framedBytes <= bytesAtOnce && reply.write(Infinity)) return reply.framed;
    }
    let isMeasured = false;
    const step = (): boolean => {
      if (isMeasured) return reply.write(bytesAtOnce);
      isMeasured = reply.measure(bytesAtOnce);
      if (isMeasured) checkSize(reply.framedBytes);
      return false;
    };
    return this.#work.run(step).then(() => reply.framed);
  }
}

/** In the words of Go's gRPC server. */
function checkSize(bytes: number): void {
  if (bytes <= maxReplyBytes) return;
  const text = `grpc: trying to send message larger than max (${bytes} vs. ${maxReplyBytes})`;
  throw new GrpcStatus(GrpcCode.resourceExhausted, text);
}
