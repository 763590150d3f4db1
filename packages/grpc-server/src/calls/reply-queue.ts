import type { Budget } from '../limits/budget.ts';
import { FairQueue } from '../limits/fair-queue.ts';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import { smallReplyBytes } from './call.ts';

/** The owner of a reply. */
export interface ReplyHolder {
  readonly replyBytes: Budget;
}

/** A reply that has not been built. */
export interface UnbuiltReply {
  readonly holder: ReplyHolder;
  /** Builds and sends it if it takes at most this many bytes, and returns 0; else returns its size. */
  sendWithin(roomBytes: number): number;
}

export interface ReplyQueueOptions {
  /** Of all connections together, with its limit. */
  readonly total: Budget;
  readonly maxTotalBytes: number;
  /** How long the first in the queue waits before `onStuck`. */
  readonly patienceMs: number;
  /** No memory was released for this long: a connection has to be closed. */
  readonly onStuck: () => void;
}

/** The rest is for small replies, so that these need no connection closed while large ones wait for room. */
const shareOfLargeReplies = 7 / 8;

/** Replies are built for this long before yielding to the event loop; a reply that has begun is finished. */
const buildSliceMs = 5;

/**
 * Large replies are built here one at a time, each when there is room for it, so that memory is accounted for before it
 * is used. A queued reply consists of its call and request only: their number is limited by that of open calls. The
 * total room goes to connections round-robin, and a reply that waits for it is not overtaken by later large replies, or
 * it might wait forever; a reply whose own connection is full waits for that connection alone. Small replies never
 * wait: what they take beyond the limit is released by closing a connection at once.
 */
export class ReplyQueue {
  /** The room for large replies, and so the largest possible reply. */
  readonly maxReplyBytes: number;
  readonly #options: ReplyQueueOptions;
  readonly #waiting = new FairQueue<ReplyHolder, UnbuiltReply>();
  /** The first in turn, when it is larger than the free room: it is not tried again before that is free. */
  #blocked: { readonly reply: UnbuiltReply; readonly bytes: number } | undefined;
  #built = 0;
  #drainIsDue = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ReplyQueueOptions) {
    this.#options = options;
    this.maxReplyBytes = Math.floor(options.maxTotalBytes * shareOfLargeReplies);
  }

  /** Sends the reply now if it is small, or if there is room for it and no other has been built in this turn. */
  admit(reply: UnbuiltReply): void {
    const { holder } = reply;
    const isFirst = !this.#drainIsDue && this.#waiting.size === 0 && holder.replyBytes.hasRoom;
    const takenBefore = this.#options.total.taken;
    if (reply.sendWithin(isFirst ? this.#room : smallReplyBytes) > 0) {
      this.#waiting.push(holder, reply);
      this.#drainSoon();
    } else if (this.#options.total.taken - takenBefore > smallReplyBytes) {
      this.#drainSoon();
    }
  }

  /** The call is over: its reply is no longer needed. */
  forget(reply: UnbuiltReply): void {
    this.#waiting.delete(reply.holder, reply);
    if (this.#blocked?.reply !== reply) return;
    this.#blocked = undefined;
    this.freed();
  }

  /** Some memory has been released. */
  freed(): void {
    if (this.#waiting.size === 0) return;
    if (this.#blocked === undefined || this.#blocked.bytes <= this.#room) this.#drainSoon();
  }

  #drainSoon(): void {
    if (this.#drainIsDue) return;
    this.#drainIsDue = true;
    setImmediate(() => this.#drain());
  }

  get #room(): number {
    return Math.max(smallReplyBytes, this.maxReplyBytes - this.#options.total.taken);
  }

  #drain(): void {
    this.#drainIsDue = false;
    if (this.#blocked !== undefined && this.#blocked.bytes > this.#room) return;
    this.#blocked = undefined;
    const untilMs = performance.now() + buildSliceMs;
    for (;;) {
      const holder = this.#waiting.next(hasOwnRoom);
      const reply = holder && this.#waiting.peek(holder);
      if (holder === undefined || reply === undefined) return;
      if (performance.now() > untilMs) {
        this.#drainSoon();
        return;
      }
      const bytes = reply.sendWithin(this.#room);
      if (bytes > 0) {
        this.#blocked = { reply, bytes };
        this.#watchBlocked();
        return;
      }
      this.#waiting.take(holder);
      this.#built += 1;
    }
  }

  #watchBlocked(): void {
    if (this.#timer !== undefined) return;
    const before = this.#built;
    const judge = (): void => {
      this.#timer = undefined;
      if (this.#blocked === undefined) return;
      if (this.#built === before) this.#options.onStuck();
      this.#watchBlocked();
    };
    // After the sockets have been read and written once more: while this process was blocked, no client could read.
    this.#timer = setTimeout(() => setImmediate(judge), this.#options.patienceMs);
    this.#timer.unref();
  }
}

function hasOwnRoom(holder: ReplyHolder): boolean {
  return holder.replyBytes.hasRoom;
}

/** The refusal of a reply that no room is large enough for, with the text of Go's gRPC server. */
export function tooLargeToSend(bytes: number, maxBytes: number): GrpcStatus {
  const text = `grpc: trying to send message larger than max (${bytes} vs. ${maxBytes})`;
  return new GrpcStatus(GrpcCode.resourceExhausted, text);
}
