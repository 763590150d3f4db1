import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { CallConnection, OpenCall } from '../calls/connection.ts';
import type { GrpcStatus } from '../calls/grpc-status.ts';
import type { HttpStream, HttpStreams } from '../calls/http-stream.ts';
import { toStatus } from '../calls/stream-call.ts';
import type { HttpRequest } from '../calls/call.ts';

/** How many sweeps the rest of a body may take after the end of its response. */
const sweepsForRest = 1;

/** Its connection, which sweeps the calls that have a timeout. */
interface SweptConnection extends CallConnection {
  readonly timedCalls: Set<OpenCall>;
}

/** An HttpStream over HTTP/1. Its request is not read before `open`. */
export class Http1Stream implements HttpStream, OpenCall {
  readonly request: HttpRequest;
  readonly connection: SweptConnection;
  onData: (chunk: Buffer) => void = ignore;
  onEnd: () => void = ignore;
  onDrain: () => void = ignore;
  onSweep: () => void = ignore;
  onRefuse: (status: GrpcStatus) => void = ignore;
  onClose: () => void = ignore;
  readonly #incoming: IncomingMessage;
  readonly #response: ServerResponse;
  #lasts = false;
  /** The connection ends with the response. */
  #closes = false;
  #isEnded = false;
  #isClosed = false;

  constructor(connection: SweptConnection, incoming: IncomingMessage, response: ServerResponse) {
    this.connection = connection;
    this.request = requestOf(incoming);
    this.#incoming = incoming;
    this.#response = response;
  }

  open(streams: HttpStreams): void {
    const incoming = this.#incoming;
    this.connection.timedCalls.add(this);
    // The handler and the sweep decide how long it may be silent; a dead client is found by the system.
    incoming.socket.setTimeout(0);
    incoming.socket.setKeepAlive(true, this.connection.limits.keepAliveTimeoutMs);
    try {
      streams.handle(this);
    } catch (error) {
      toStatus(error, this.connection, this.request.target);
      this.destroy();
      return;
    }
    this.#response.on('drain', () => this.onDrain());
    incoming.on('data', (chunk: Buffer) => !this.#isOver && this.onData(chunk));
    incoming.on('end', () => !this.#isOver && this.onEnd());
  }

  /** The response is complete, or the connection is gone. Idempotent. */
  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.connection.timedCalls.delete(this);
    this.connection.lastingCalls.delete(this);
    this.onClose();
  }

  get bufferedBytes(): number {
    return this.#response.writableLength;
  }

  lasts(): void {
    this.#lasts = true;
    this.connection.lastingCalls.add(this);
  }

  pause(): void {
    this.#incoming.pause();
  }

  resume(): void {
    this.#incoming.resume();
  }

  respond(status: number, headers: OutgoingHttpHeaders): void {
    if (this.#isOver) return;
    // Closing drops what is left of the body, of any length and however slowly it comes.
    if (!this.#incoming.complete && !this.#lasts) {
      this.#closes = true;
      this.#response.setHeader('connection', 'close');
    }
    this.#response.writeHead(status, headers);
  }

  write(bytes: Buffer, onTaken: () => void = ignore): boolean {
    if (!this.#isOver) return this.#response.write(bytes, () => onTaken());
    onTaken();
    return true;
  }

  end(bytes?: Buffer): void {
    if (this.#isOver) return;
    this.#isEnded = true;
    if (bytes === undefined) this.#response.end();
    else this.#response.end(bytes);
    if (this.#incoming.complete) return;
    this.#incoming.resume();
    this.#response.on('finish', () => {
      if (this.#closes) this.#incoming.socket.destroySoon();
      else this.#dropRest();
    });
  }

  destroy(): void {
    this.#incoming.socket.destroy();
  }

  sweep(): void {
    this.onSweep();
  }

  refuse(status: GrpcStatus): void {
    this.#closes = true;
    if (!this.#isOver) this.onRefuse(status);
  }

  /** What is left of the body of a stream is usually on its way, and the client may use the connection again. */
  #dropRest(): void {
    if (this.#incoming.complete) return;
    const { timedCalls } = this.connection;
    let sweeps = 0;
    const rest: OpenCall = {
      sweep: () => {
        sweeps += 1;
        if (sweeps > sweepsForRest) this.destroy();
      },
      refuse: () => this.destroy(),
    };
    timedCalls.add(rest);
    this.#incoming.on('close', () => timedCalls.delete(rest));
  }

  get #isOver(): boolean {
    return this.#isEnded || this.#isClosed;
  }
}

export function requestOf(incoming: IncomingMessage): HttpRequest {
  const { method = '', url = '/', headers, socket } = incoming;
  return { method, target: url, headers, isSecure: socket instanceof TLSSocket };
}

function ignore(): void {}
