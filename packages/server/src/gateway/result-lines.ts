import { frameHeadroomBytes } from '@tenure/codec';
import type { DescMessage } from '@bufbuild/protobuf';
import { ReplyEncoder } from './reply-encoder.ts';

/** How much of a message is converted in one turn of the event loop. */
const maxSliceBytes = 16 * 1024;

/** Where the lines go: an HttpStream, and what else a call does for each write. */
interface LineSink {
  /** False when the buffer is above its mark. `onTaken`: the socket has the bytes, or the stream was closed. */
  write(json: Buffer, onTaken?: () => void): boolean;
  /** Lines waited, and none does any more. `isBelowMark`: what the last write returned. */
  onSent(isBelowMark: boolean): void;
}

/**
 * The messages of a stream as lines of JSON. A short one is written at once. A long one is converted in turns of the
 * event loop, each after the socket has taken the piece before; the messages after it wait for it, unconverted.
 *
 * Who sends bounds how many wait: `send` has returned false, and `waitingBytes` counts them.
 */
export class ResultLines {
  readonly #descriptor: DescMessage;
  readonly #sink: LineSink;
  /** The first is being converted. */
  #waiting: Buffer[] = [];
  #encoder: ReplyEncoder | undefined;
  /** How much of the first message has been converted. */
  #convertedBytes = 0;
  #waitingBytes = 0;
  #thenEnd: (() => void) | undefined;

  constructor(descriptor: DescMessage, sink: LineSink) {
    this.#descriptor = descriptor;
    this.#sink = sink;
  }

  /** Bytes of messages that are not converted yet. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  get isSending(): boolean {
    return this.#waiting.length > 0;
  }

  /** False when a line waits, or the buffer is above its mark; the message is sent all the same. */
  send(framed: Buffer): boolean {
    const message = framed.subarray(frameHeadroomBytes);
    if (!this.isSending && message.length <= maxSliceBytes) {
      return this.#sink.write(Buffer.from(`{"result":${ReplyEncoder.encode(this.#descriptor, message)}}\n`));
    }
    this.#waiting.push(message);
    this.#waitingBytes += message.length;
    if (this.#waiting.length === 1) this.#writeSlice();
    return false;
  }

  /** Calls `end` after the last line. Nothing is sent afterwards. */
  whenSent(end: () => void): void {
    if (this.isSending) this.#thenEnd = end;
    else end();
  }

  /** The stream is closed. */
  close(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#encoder = undefined;
    this.#thenEnd = undefined;
  }

  #writeSlice(): void {
    const message = this.#waiting[0];
    // Closed meanwhile.
    if (message === undefined) return;
    const encoder = (this.#encoder ??= new ReplyEncoder(this.#descriptor, message.length));
    const slice = message.subarray(this.#convertedBytes, this.#convertedBytes + maxSliceBytes);
    const before = this.#convertedBytes === 0 ? '{"result":' : '';
    this.#convertedBytes += slice.length;
    this.#waitingBytes -= slice.length;
    const isLast = this.#convertedBytes === message.length;
    const json = Buffer.from(`${before}${encoder.push(slice)}${isLast ? '}\n' : ''}`);
    if (isLast) this.#nextMessage();
    const goOn = this.isSending ? () => void setImmediate(() => this.#writeSlice()) : undefined;
    const isBelowMark = this.#sink.write(json, goOn);
    if (goOn === undefined) this.#sent(isBelowMark);
  }

  #nextMessage(): void {
    this.#waiting.shift();
    this.#encoder = undefined;
    this.#convertedBytes = 0;
  }

  #sent(isBelowMark: boolean): void {
    const end = this.#thenEnd;
    this.#thenEnd = undefined;
    if (end === undefined) this.#sink.onSent(isBelowMark);
    else end();
  }
}
