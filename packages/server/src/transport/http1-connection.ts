import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Budget } from './budget.ts';
import type { SharedByConnections } from './http2-connection.ts';
import type { HttpClientConnection, HttpExchange, HttpQueue } from './http-queue.ts';
import type { HttpReply, HttpRequest } from './transport.ts';
import type { TransportLog } from './transport-log.ts';

/**
 * One HTTP/1 connection. Its requests are answered one after the other, each when the socket has taken the previous
 * response: for a client that pipelines many and reads nothing one response is held.
 */
export class Http1Connection implements HttpClientConnection {
  readonly openCalls: Budget;
  readonly requestBytes: Budget;
  readonly replyBytes: Budget;
  readonly resultBytes: Budget;
  readonly streamBytes: Budget;
  readonly http: HttpQueue;
  readonly #socket: Socket;
  readonly #log: TransportLog;
  readonly #exchanges = new Set<Http1Exchange>();
  /** Servers use HTTP/2 among each other. */
  readonly isPeer = false;
  #isCut = false;

  constructor(socket: Socket, { limits, log, budgets, http }: SharedByConnections) {
    this.#socket = socket;
    this.#log = log;
    this.http = http;
    this.openCalls = new Budget(limits.maxPipelinedRequests, { total: budgets.openCalls });
    this.requestBytes = new Budget(limits.maxConnectionRequestBytes, { total: budgets.requestBytes });
    this.replyBytes = new Budget(limits.maxConnectionReplyBytes, { total: budgets.replyBytes });
    this.resultBytes = new Budget(limits.maxConnectionResultBytes, { total: budgets.resultBytes });
    this.streamBytes = new Budget(limits.maxConnectionStreamBytes, { total: budgets.streamBytes });
    // Not all responses of pipelined requests emit an event at the end of the connection.
    socket.on('close', () => {
      for (const exchange of this.#exchanges) this.end(exchange);
    });
  }

  get mayAnswerHttp(): boolean {
    return this.replyBytes.taken === 0;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  received(request: IncomingMessage, response: ServerResponse): void {
    // A body would be buffered until it is read.
    request.resume();
    if (this.#isCut || this.#socket.destroyed) return;
    const exchange = new Http1Exchange(this, request, response);
    this.#exchanges.add(exchange);
    this.openCalls.take(1);
    if (!this.openCalls.hasRoom || !this.http.push(exchange)) this.cut('a client sends too many HTTP requests ahead');
  }

  /** False when the response is no longer needed. */
  awaits(exchange: Http1Exchange): boolean {
    return this.#exchanges.has(exchange);
  }

  /** Idempotent. */
  end(exchange: Http1Exchange): void {
    if (!this.#exchanges.delete(exchange)) return;
    this.openCalls.giveBack(1);
    this.replyBytes.giveBack(exchange.replyBytes);
    this.http.forget(exchange);
    this.http.resume();
  }

  /** Ends the connection because of its client's behaviour, and logs that once. */
  cut(reason: string): void {
    if (this.#isCut) return;
    this.#isCut = true;
    this.#log.warn({ remoteAddress: this.#socket.remoteAddress }, reason);
    this.#socket.destroy();
  }
}

class Http1Exchange implements HttpExchange {
  readonly client: Http1Connection;
  readonly request: HttpRequest;
  readonly #response: ServerResponse;
  replyBytes = 0;

  constructor(client: Http1Connection, request: IncomingMessage, response: ServerResponse) {
    this.client = client;
    this.request = { method: request.method ?? '', target: request.url ?? '/' };
    this.#response = response;
    response.on('finish', () => client.end(this));
    response.on('close', () => client.end(this));
  }

  answer({ status, headers, body }: HttpReply): void {
    const response = this.#response;
    if (!this.client.awaits(this)) return;
    const bytes = Buffer.from(body);
    this.replyBytes = bytes.length;
    this.client.replyBytes.take(bytes.length);
    // Closing drops an unread body of any length.
    if (this.request.method !== 'GET' && this.request.method !== 'HEAD') response.setHeader('connection', 'close');
    response.writeHead(status, { ...headers, 'content-length': bytes.length });
    response.end(bytes);
  }
}
