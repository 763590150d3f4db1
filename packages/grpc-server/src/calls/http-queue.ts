import { FairQueue } from '../limits/fair-queue.ts';
import type { HttpHandler, HttpReply, HttpRequest } from './call.ts';
import type { TransportLog } from './transport-log.ts';

/** A connection with HTTP requests. */
export interface HttpClientConnection {
  /** Whether one more response may be made now. When that changes, `HttpQueue.resume` is called. */
  readonly mayAnswerHttp: boolean;
}

/** One request, and the function that responds. */
export interface HttpExchange {
  readonly client: HttpClientConnection;
  readonly request: HttpRequest;
  answer(reply: HttpReply): void;
}

const internalError: HttpReply = { status: 500, headers: { 'content-type': 'text/plain' }, body: 'internal error\n' };

/**
 * The queue of HTTP requests for their handler. A handler may take milliseconds and produce many kilobytes, so one
 * request begins in each turn of the event loop and one at a time for each connection, round-robin.
 */
export class HttpQueue {
  readonly #handle: HttpHandler;
  readonly #log: TransportLog;
  readonly #maxWaiting: number;
  readonly #waiting = new FairQueue<HttpClientConnection, HttpExchange>();
  readonly #answering = new Set<HttpClientConnection>();
  #turnIsDue = false;

  /** `maxWaiting`: per connection. */
  constructor(handle: HttpHandler, log: TransportLog, maxWaiting: number) {
    this.#handle = handle;
    this.#log = log;
    this.#maxWaiting = maxWaiting;
  }

  /** False when too many requests of its connection are queued. */
  push(exchange: HttpExchange): boolean {
    if (this.#waiting.waitingFor(exchange.client) >= this.#maxWaiting) return false;
    this.#waiting.push(exchange.client, exchange);
    this.resume();
    return true;
  }

  /** The response is no longer needed. */
  forget(exchange: HttpExchange): void {
    this.#waiting.delete(exchange.client, exchange);
  }

  resume(): void {
    if (this.#turnIsDue || this.#waiting.size === 0) return;
    this.#turnIsDue = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#turnIsDue = false;
    const client = this.#waiting.next((each) => each.mayAnswerHttp && !this.#answering.has(each));
    const exchange = client && this.#waiting.take(client);
    if (exchange === undefined) return;
    void this.#answer(exchange);
    this.resume();
  }

  async #answer(exchange: HttpExchange): Promise<void> {
    const { client, request } = exchange;
    this.#answering.add(client);
    try {
      exchange.answer(await this.#handle(request));
    } catch (error) {
      this.#log.error({ err: error, path: request.target }, 'an HTTP request failed');
      exchange.answer(internalError);
    } finally {
      this.#answering.delete(client);
      this.resume();
    }
  }
}
