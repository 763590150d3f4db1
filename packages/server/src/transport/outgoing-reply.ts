import type { ServerHttp2Stream } from 'node:http2';
import type { Budget } from './budget.ts';
import type { PiecewiseReply } from './transport.ts';

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
 * that HTTP/2 has handed to the socket is held until the socket has taken it.
 */
export class OutgoingReply {
  readonly #stream: ServerHttp2Stream;
  readonly #reply: PiecewiseReply;
  readonly #budget: Budget;
  readonly #onTaken: (isAll: boolean) => void;
  #sentBytes = 0;
  #isUnderWay = false;
  #isStreamClosed = false;
  #heldBytes: number;

  /**
   * `first` is the first piece of the reply, with its prefix. `onTaken` is called when a piece has been taken; with
   * true, the stream can be ended.
   */
  constructor(
    stream: ServerHttp2Stream,
    reply: PiecewiseReply,
    first: Buffer,
    budget: Budget,
    onTaken: (isAll: boolean) => void,
  ) {
    this.#stream = stream;
    this.#reply = reply;
    this.#budget = budget;
    this.#onTaken = onTaken;
    this.#heldBytes = reply.framedBytes;
    budget.take(reply.framedBytes);
    this.#write(first);
  }

  streamClosed(): void {
    this.#isStreamClosed = true;
    if (!this.#isUnderWay) this.#giveBack();
  }

  #write(piece: Buffer): void {
    this.#sentBytes += piece.length;
    this.#isUnderWay = true;
    this.#stream.write(piece, this.#taken);
  }

  readonly #taken = (error?: Error | null): void => {
    this.#isUnderWay = false;
    const isAll = this.#sentBytes === this.#reply.framedBytes;
    if (isAll || this.#isStreamClosed) this.#giveBack();
    if (this.#isStreamClosed || (error !== null && error !== undefined)) return;
    this.#onTaken(isAll);
    if (!isAll && !this.#stream.destroyed) this.#write(this.#reply.nextPiece());
  };

  #giveBack(): void {
    this.#budget.giveBack(this.#heldBytes);
    this.#heldBytes = 0;
  }
}
