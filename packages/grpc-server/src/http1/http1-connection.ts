import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Budget } from '../limits/budget.ts';
import type { CallConnection, OpenCall } from '../calls/connection.ts';
import type { GrpcStatus } from '../calls/grpc-status.ts';
import { Http1Stream, requestOf } from './http1-stream.ts';
import type { SharedByConnections } from '../calls/http2-connection.ts';
import type { HttpExchange, HttpQueue } from '../calls/http-queue.ts';
import type { HttpStreams } from '../calls/http-stream.ts';
import type { ReplyQueue } from '../calls/reply-queue.ts';
import type { HttpReply, HttpRequest } from '../calls/call.ts';
import type { TransportLimits } from '../limits/transport-limits.ts';
import type { TransportLog } from '../calls/transport-log.ts';

/**
 * One HTTP/1 connection. Its requests are answered one after the other, each when the socket has taken the previous
 * response: for a client that pipelines many and reads nothing one response is held.
 */
export class Http1Connection implements CallConnection {
  readonly remoteAddress: string;
  /** A certificate does not log a client in here: requests that are not gRPC name their user by a token alone. */
  readonly commonName = undefined;
  readonly certificateName: string | undefined;
  readonly limits: TransportLimits;
  readonly log: TransportLog;
  /** Calls whose request or reply has a timeout; checked by every sweep. */
  readonly timedCalls: Set<OpenCall> = new Set();
  readonly lastingCalls: Set<OpenCall> = new Set();
  readonly openCalls: Budget;
  readonly requestBytes: Budget;
  readonly replyBytes: Budget;
  readonly resultBytes: Budget;
  readonly streamBytes: Budget;
  readonly replies: ReplyQueue;
  readonly http: HttpQueue;
  sweeps = 0;
  readonly #socket: Socket;
  readonly #streams: HttpStreams | undefined;
  readonly #exchanges = new Set<Http1Exchange>();
  /** The requests that are not answered yet, in the order in which they came. */
  readonly #unanswered = new Set<Http1Exchange | Http1Stream>();
  /** What begins those that wait for the requests before them. */
  readonly #waitingStreams = new Map<Http1Exchange | Http1Stream, () => void>();
  readonly #streamEnds = new Set<() => void>();
  /** Servers use HTTP/2 among each other. */
  readonly isPeer = false;
  #isCut = false;

  constructor(socket: Socket, shared: SharedByConnections, streams?: HttpStreams, certificateName?: string) {
    const { limits, log, budgets, replies, http } = shared;
    this.#socket = socket;
    this.#streams = streams;
    this.remoteAddress = socket.remoteAddress ?? '';
    this.certificateName = certificateName;
    this.limits = limits;
    this.log = log;
    this.replies = replies;
    this.http = http;
    this.openCalls = new Budget(limits.maxPipelinedRequests, { total: budgets.openCalls });
    this.requestBytes = new Budget(limits.maxConnectionRequestBytes, { total: budgets.requestBytes });
    this.replyBytes = new Budget(limits.maxConnectionReplyBytes, { total: budgets.replyBytes });
    this.resultBytes = new Budget(limits.maxConnectionResultBytes, { total: budgets.resultBytes });
    this.streamBytes = new Budget(limits.maxConnectionStreamBytes, { total: budgets.streamBytes });
    // Not all responses of pipelined requests emit an event at the end of the connection.
    socket.on('close', () => {
      for (const exchange of this.#exchanges) this.end(exchange);
      for (const end of this.#streamEnds) end();
    });
  }

  get mayAnswerHttp(): boolean {
    return this.replyBytes.taken === 0;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  received(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isCut || this.#socket.destroyed) return;
    this.openCalls.take(1);
    if (this.#streams?.serves(request.url ?? '/') === true) {
      this.#receivedStream(this.#streams, request, response);
    } else {
      // A body would be buffered until it is read.
      request.resume();
      const exchange = new Http1Exchange(this, request, response);
      this.#exchanges.add(exchange);
      this.#unanswered.add(exchange);
      if (!this.http.push(exchange)) this.#tooManyAhead();
    }
    if (!this.openCalls.hasRoom) this.#tooManyAhead();
  }

  /** Checks the timeouts. Called every sweepIntervalMs. */
  sweep(): void {
    this.sweeps += 1;
    for (const call of this.timedCalls) call.sweep();
    for (const exchange of this.#exchanges) exchange.sweep();
  }

  /** Ends the calls that would not end by themselves. */
  drain(status: GrpcStatus): void {
    for (const call of this.lastingCalls) call.refuse(status);
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
    this.#unanswered.delete(exchange);
    this.#openNext();
  }

  /** Ends the connection because of its client's behaviour, and logs that once. */
  cut(reason: string): void {
    if (this.#isCut) return;
    this.#isCut = true;
    this.log.warn({ remoteAddress: this.#socket.remoteAddress }, reason);
    this.#socket.destroy();
  }

  shed(reason: string): void {
    this.cut(reason);
  }

  /**
   * Its body is not read before the requests ahead of it have been answered, so a client holds one body at a time, as
   * with HTTP/2's flow control.
   */
  #receivedStream(streams: HttpStreams, request: IncomingMessage, response: ServerResponse): void {
    const stream = new Http1Stream(this, request, response);
    const end = (): void => {
      if (!this.#streamEnds.delete(end)) return;
      this.openCalls.giveBack(1);
      this.#waitingStreams.delete(stream);
      stream.closed();
      this.#unanswered.delete(stream);
      this.#openNext();
    };
    response.on('finish', end);
    response.on('close', end);
    this.#streamEnds.add(end);
    this.#unanswered.add(stream);
    this.#waitingStreams.set(stream, () => stream.open(streams));
    this.#openNext();
  }

  /** Begins the first of the unanswered requests, if it waits for that. */
  #openNext(): void {
    const [first] = this.#unanswered;
    const open = first && this.#waitingStreams.get(first);
    if (first === undefined || open === undefined || this.#socket.destroyed) return;
    this.#waitingStreams.delete(first);
    open();
  }

  #tooManyAhead(): void {
    this.cut('a client sends too many HTTP requests ahead');
  }
}

class Http1Exchange implements HttpExchange {
  readonly client: Http1Connection;
  readonly request: HttpRequest;
  readonly #incoming: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #beganAt: number;
  replyBytes = 0;

  constructor(client: Http1Connection, request: IncomingMessage, response: ServerResponse) {
    this.client = client;
    this.request = requestOf(request);
    this.#incoming = request;
    this.#response = response;
    this.#beganAt = client.sweeps;
    response.on('finish', () => client.end(this));
    response.on('close', () => client.end(this));
  }

  answer({ status, headers, body }: HttpReply): void {
    const response = this.#response;
    if (!this.client.awaits(this)) return;
    const bytes = Buffer.from(body);
    this.replyBytes = bytes.length;
    this.client.replyBytes.take(bytes.length);
    // Closing drops an unread body, of any length and however slowly it comes.
    const isBodyOver = this.#incoming.complete;
    if (!isBodyOver || (this.request.method !== 'GET' && this.request.method !== 'HEAD')) {
      response.setHeader('connection', 'close');
    }
    response.writeHead(status, { ...headers, 'content-length': bytes.length });
    response.end(bytes);
  }

  /** Ends the connection of a client whose request takes too long to arrive. */
  sweep(): void {
    const { limits, sweeps } = this.client;
    const waitedMs = (sweeps - this.#beganAt) * limits.sweepIntervalMs;
    if (!this.#incoming.complete && waitedMs > limits.http1RequestTimeoutMs) this.#incoming.socket.destroy();
  }
}
