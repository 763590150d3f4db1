import type { Budget } from './budget.ts';
import { FairQueue } from './fair-queue.ts';
import { smallReplyBytes } from './transport.ts';

/** Whom a reply is for. */
export interface ReplyHolder {
  readonly replyBytes: Budget;
}

/** A reply that has not been built. */
export interface UnbuiltReply {
  readonly holder: ReplyHolder;
  /** Builds and sends it if it takes at most so many bytes, and gives 0; else the bytes that it would take. */
  sendWithin(roomBytes: number): number;
}

export interface ReplyQueueOptions {
  /** Of all connections together, and its limit. */
  readonly total: Budget;
  readonly maxTotalBytes: number;
  /** How long the first in the queue waits before `onStuck`. */
  readonly patienceMs: number;
  /** Nothing has become free for so long: somebody has to go. */
  readonly onStuck: () => void;
}

/** The rest is for small replies, so that these need nobody's connection while large ones wait for room. */
const shareOfLargeReplies = 7 / 8;

/** Replies are built for so long before the event loop goes on; one is finished when it has been begun. */
const buildSliceMs = 5;

/**
 * Large replies are built here one at a time, each when there is room for it, so that what is in memory was counted
 * before it was made. Those that must wait do so as calls with their requests and nothing else: their number is
 * bounded by that of open calls. The room of all goes to connections in turn, and to no large reply behind the one
 * that waits for it, or a reply of many bytes would wait for ever; one whose own connection is full waits for that one
 * alone. Small replies never wait: what they take beyond the limit is shed at once.
 */
export class ReplyQueue {
  /** What large replies may take in all, and so the largest that there can be. */
  readonly maxReplyBytes: number;
  readonly #options: ReplyQueueOptions;
  readonly #waiting = new FairQueue<ReplyHolder, UnbuiltReply>();
  /** The first in turn, when it is larger than what is free for all: it is not asked again before that is free. */
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

  /** The call is over: its reply is not wanted any more. */
  forget(reply: UnbuiltReply): void {
    this.#waiting.delete(reply.holder, reply);
    if (this.#blocked?.reply !== reply) return;
    this.#blocked = undefined;
    this.freed();
  }

  /** Some of what was taken has been given back. */
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
    // After the sockets have been read and written once more: when this process stood still, nobody could read.
    this.#timer = setTimeout(() => setImmediate(judge), this.#options.patienceMs);
    this.#timer.unref();
  }
}

function hasOwnRoom(holder: ReplyHolder): boolean {
  return holder.replyBytes.hasRoom;
}
