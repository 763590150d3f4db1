/** A stream in a queue; these fields belong to the queue. */
export interface QueuedStream {
  queue: SendQueue<never> | undefined;
  queuedBefore: QueuedStream | undefined;
  queuedAfter: QueuedStream | undefined;
}

/** Streams of a connection that have something to send, first come, first served. A stream is in one queue at most. */
export class SendQueue<Stream extends QueuedStream> {
  #first: QueuedStream | undefined;
  #last: QueuedStream | undefined;

  get first(): Stream | undefined {
    return this.#first as Stream | undefined;
  }

  /** At the end. It leaves the queue that it is in. */
  push(stream: Stream): void {
    removeFromQueue(stream);
    stream.queue = this as unknown as SendQueue<never>;
    stream.queuedBefore = this.#last;
    if (this.#last === undefined) this.#first = stream;
    else this.#last.queuedAfter = stream;
    this.#last = stream;
  }

  /** For a stream of this queue. */
  remove(stream: Stream): void {
    const { queuedBefore: before, queuedAfter: after } = stream;
    if (before === undefined) this.#first = after;
    else before.queuedAfter = after;
    if (after === undefined) this.#last = before;
    else after.queuedBefore = before;
    stream.queue = undefined;
    stream.queuedBefore = undefined;
    stream.queuedAfter = undefined;
  }
}

/** Does nothing for a stream that is in no queue. */
export function removeFromQueue(stream: QueuedStream): void {
  (stream.queue as SendQueue<QueuedStream> | undefined)?.remove(stream);
}
