import type { IncomingHttpHeaders } from 'node:http';
import type { Connection } from './connection.ts';
import type { RefusedHead } from './request-head.ts';
import { StreamCall } from './stream-call.ts';

/** A call that is refused for its headers. Its further data is dropped. */
export class RefusedCall extends StreamCall {
  readonly #refused: RefusedHead;

  constructor(id: number, metadata: IncomingHttpHeaders, refused: RefusedHead, connection: Connection) {
    super(id, metadata, refused, connection);
    this.#refused = refused;
  }

  start(): void {
    this.ended = true;
    this.sendStatus(this.#refused.httpStatus, this.#refused.status);
  }

  received(): void {}

  halfClosed(): void {}

  protected sweepUnanswered(): void {}

  protected closed(): void {}
}
