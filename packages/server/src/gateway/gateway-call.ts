import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { Requester } from '@tenure/core';
import { type CallerConnection, GrpcCode, GrpcStatus, type HttpStream, deadlineExceeded } from '@tenure/grpc-server';
import type { Call } from '../transport/transport.ts';
import { errorLine, httpStatusOf, statusJson } from './gateway-status.ts';
import type { MessageTurn } from './message-turn.ts';

/** The maximum delay of a timer; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** What every call needs. */
export interface CallOptions {
  /** '/package.Service/Method' */
  readonly path: string;
  readonly metadata: IncomingHttpHeaders;
  readonly timeoutMs: number;
  readonly caller: CallerConnection;
  /** Of every response. */
  readonly headers: OutgoingHttpHeaders;
  /** Bytes of JSON that one message may have. */
  readonly maxJsonBytes: number;
  /** Shared by all calls of the gateway. */
  readonly messageTurn: MessageTurn;
}

/** etcd's gateway repeats the headers of its own gRPC connection. */
const replyHeaders = { 'content-type': 'application/json', 'grpc-metadata-content-type': 'application/grpc' };

/** The common part of the kinds of call at the gateway: a request over HTTP as services see it, and how it ends. */
export abstract class GatewayCall implements Call {
  readonly path: string;
  readonly metadata: IncomingHttpHeaders;
  readonly deadlineMs: number;
  readonly connection: CallerConnection;
  requester: Requester | undefined = undefined;
  protected readonly stream: HttpStream;
  protected readonly options: CallOptions;
  /** True once the response is determined or the stream is gone: nothing more may be sent. */
  protected ended = false;
  protected hasReplied = false;
  readonly #abort = new AbortController();
  #deadlineTimer: NodeJS.Timeout | undefined;
  #heldRequestBytes = 0;

  constructor(stream: HttpStream, options: CallOptions) {
    this.stream = stream;
    this.options = options;
    this.path = options.path;
    this.metadata = options.metadata;
    this.connection = options.caller;
    this.deadlineMs = options.timeoutMs === Infinity ? Infinity : performance.now() + options.timeoutMs;
    stream.onClose = () => {
      this.settle();
      this.#abort.abort();
      this.stream.connection.requestBytes.giveBack(this.#heldRequestBytes);
      this.#heldRequestBytes = 0;
      this.closed();
    };
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Ends the call with a status that its handler did not choose. */
  refuse(status: GrpcStatus): void {
    if (this.ended) return;
    this.#abort.abort();
    this.finish(status);
  }

  /** The stream was closed by either side. Called once. */
  protected abstract closed(): void;

  protected armDeadline(): void {
    if (this.deadlineMs === Infinity || this.ended) return;
    const remainingMs = this.deadlineMs - performance.now();
    if (remainingMs <= 0) {
      this.refuse(deadlineExceeded());
      return;
    }
    const delayMs = Math.min(Math.ceil(remainingMs), maxTimerMs);
    this.#deadlineTimer = setTimeout(() => this.armDeadline(), delayMs);
  }

  /** Counts what the call holds of its request, until the next count. Throws GrpcStatus when there is no room. */
  protected holdRequest(bytes: number): void {
    const budget = this.stream.connection.requestBytes;
    const more = bytes - this.#heldRequestBytes;
    if (more > 0 && !budget.hasRoom) {
      throw new GrpcStatus(GrpcCode.resourceExhausted, 'too many bytes of unfinished requests on this connection');
    }
    this.#heldRequestBytes = bytes;
    budget.take(more);
  }

  /** Sends the headers of a reply. Once per call. */
  protected startReply(more: OutgoingHttpHeaders = {}): void {
    this.hasReplied = true;
    this.stream.respond(200, { ...this.options.headers, ...replyHeaders, ...more });
  }

  protected settle(): void {
    this.ended = true;
    clearTimeout(this.#deadlineTimer);
  }

  /** Starts the call. Called once, before anything else. */
  abstract start(): void;

  /** Ends the call with a refusal: as the whole response, or as the last line of a stream. */
  protected abstract finish(status: GrpcStatus): void;

  /** A refusal as the whole response. */
  protected sendRefusal(status: GrpcStatus): void {
    const isChallenge = status.code === GrpcCode.unauthenticated;
    this.#sendAlone(status, statusJson(status), isChallenge ? { 'www-authenticate': headerText(status.message) } : {});
  }

  /** The same where the response is a stream. */
  protected sendErrorLine(status: GrpcStatus): void {
    if (this.hasReplied) this.stream.end(Buffer.from(errorLine(status)));
    else this.#sendAlone(status, errorLine(status), {});
  }

  #sendAlone(status: GrpcStatus, body: string, more: OutgoingHttpHeaders): void {
    const bytes = Buffer.from(body);
    this.hasReplied = true;
    const type = { 'content-type': 'application/json', 'content-length': bytes.length };
    this.stream.respond(httpStatusOf(status), { ...this.options.headers, ...type, ...more });
    this.stream.end(bytes);
  }
}

/** A text as the value of a header, which holds printable ASCII alone. */
function headerText(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?');
}
