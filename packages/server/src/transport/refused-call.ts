import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Connection } from './connection.ts';
import type { RefusedHead } from './request-head.ts';
import { StreamCall } from './stream-call.ts';

/** A call that is refused for its headers. Its further data is dropped. */
export class RefusedCall extends StreamCall {
  readonly #refused: RefusedHead;

  constructor(stream: ServerHttp2Stream, metadata: IncomingHttpHeaders, refused: RefusedHead, connection: Connection) {
    super(stream, metadata, refused, connection);
    this.#refused = refused;
  }

  start(): void {
    this.ended = true;
    this.startReading();
    this.sendStatus(this.#refused.httpStatus, this.#refused.status);
  }

  received(): void {}

  halfClosed(): void {}

  protected sweepUnanswered(): void {}

  protected closed(): void {}
}
