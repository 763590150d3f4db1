import type { Http2Stream } from '../http2/http2-stream.ts';
import type { Budget } from '../limits/budget.ts';
import type { PiecewiseReply } from './call.ts';

/**
 * A reply is written in pieces of this size, each when the previous one has been taken, so that a slow reader is
 * distinguished from one that has stalled.
 */
const pieceBytes = 64 * 1024;

/** A reply that is in memory as a whole. */
export function piecesOf(framed: Buffer): PiecewiseReply {
  let at = 0;
  return {
    framedBytes: framed.length,
    nextPiece: () => {
      const piece = framed.subarray(at, at + pieceBytes);
      at += piece.length;
      return piece;
    },
  };
}

/**
 * The body of one outgoing reply. All of it is counted until the socket has taken its last piece: a piece may be a view
 * that keeps the whole in memory, and an unbuilt piece holds its keys and values. When the stream is reset, a piece
 * that is on its way to the socket is counted until the socket has taken it.
 */
export class OutgoingReply {
  readonly #stream: Http2Stream;
  readonly #reply: PiecewiseReply;
  readonly #budget: Budget;
  #sentBytes = 0;
  #heldBytes = 0;

  constructor(stream: Http2Stream, reply: PiecewiseReply, budget: Budget) {
    this.#stream = stream;
    this.#reply = reply;
    this.#budget = budget;
  }

  /**
   * Sends the first piece of the reply, with its prefix. The budget may close the stream, which must know of this reply
   * by then.
   */
  begin(first: Buffer): void {
    this.#heldBytes = this.#reply.framedBytes;
    this.#stream.countsOutput = true;
    this.#budget.take(this.#heldBytes);
    this.#send(first);
  }

  /** The last piece has left: sends the next. True when that was the last one, and the stream can be ended. */
  next(): boolean {
    if (this.#heldBytes === 0) return false;
    if (this.#sentBytes < this.#reply.framedBytes) {
      this.#send(this.#reply.nextPiece());
      return false;
    }
    this.#giveBack();
    return true;
  }

  streamClosed(): void {
    this.#giveBack();
  }

  #send(piece: Buffer): void {
    this.#sentBytes += piece.length;
    this.#stream.sendData(piece);
  }

  #giveBack(): void {
    const heldBytes = this.#heldBytes;
    this.#heldBytes = 0;
    if (heldBytes > 0) this.#stream.session.sender.afterOutput(() => this.#budget.giveBack(heldBytes));
  }
}
