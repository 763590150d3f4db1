import { constants, type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { GrpcCallError, GrpcCode } from './grpc-call-error.ts';

/** gRPC puts a flag and a length before each message. */
const prefixBytes = 5;
const { NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM, NGHTTP2_NO_ERROR } = constants;
/** The gRPC status for an HTTP status without a gRPC one: gRPC's HTTP to gRPC Status Code Mapping. */
const codeOfHttp: Readonly<Record<number, number>> = {
  400: GrpcCode.internal,
  401: GrpcCode.unauthenticated,
  403: GrpcCode.permissionDenied,
  404: GrpcCode.unimplemented,
  429: GrpcCode.unavailable,
  502: GrpcCode.unavailable,
  503: GrpcCode.unavailable,
  504: GrpcCode.unavailable,
};

interface CallStatus {
  readonly code: number;
  readonly details: string;
  readonly trailers?: Readonly<Record<string, string>>;
}

/**
 * One call as a duplex stream of complete messages, as bytes. It ends when the server has ended the call with status
 * OK, and is destroyed with a GrpcCallError otherwise. `write` returns false while the server accepts no more, as with
 * any stream of Node.
 */
export class GrpcStream extends Duplex {
  readonly #http: ClientHttp2Stream;
  readonly #maxMessageBytes: number;
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  /** The size of the next message, with its prefix; unknown until its prefix has arrived. */
  #neededBytes = prefixBytes;
  #status: CallStatus | undefined;
  #httpStatus = 0;
  #isConnectionBroken = false;
  #isOver = false;
  /** The server has ended the call, or the connection has: this side has not cancelled it. */
  #isEndedByServer = false;
  /** The result of the stream once the received data has been read. */
  #failure: GrpcCallError | undefined;

  constructor(http: ClientHttp2Stream, maxMessageBytes: number) {
    super({ objectMode: true, writableHighWaterMark: 16, readableHighWaterMark: 16, allowHalfOpen: true });
    this.#http = http;
    this.#maxMessageBytes = maxMessageBytes;
    http.on('response', (headers) => this.#takeHeaders(headers));
    http.on('trailers', (trailers) => this.#takeStatus(trailers));
    http.on('data', (bytes: Buffer) => this.#take(bytes));
    http.on('error', (error: NodeJS.ErrnoException) => {
      // The connection ended with an error, and every call gets its code, even those that had begun.
      if (error.code === 'ERR_HTTP2_SESSION_ERROR') this.#isConnectionBroken = true;
    });
    // The server has ended the call; this side may still be open. Without an end, the connection broke.
    http.on('end', () => this.#over());
    http.on('close', () => this.#over());
  }

  /**
   * Bytes derived under this label from the keys of the connection (RFC 8446, section 7.5). Undefined without TLS, and
   * on a closed connection.
   */
  keyingMaterial(label: string, bytes: number): Buffer | undefined {
    const { session } = this.#http;
    if (session === undefined || session.destroyed) return undefined;
    const { socket } = session;
    if (!isTls(socket) || socket.destroyed) return undefined;
    return socket.exportKeyingMaterial(bytes, label, Buffer.alloc(0));
  }

  /** Ends the call on both sides. Effects on the server until it receives the reset remain. */
  cancel(code: number = GrpcCode.cancelled, details = 'the call was cancelled'): void {
    this.#isOver = true;
    this.destroy(new GrpcCallError(code, details, { wasSent: true }));
  }

  /** Sends the only message of this side, and ends the side with the same frame. Nothing was written before. */
  sendOnly(message: Uint8Array): void {
    this.#http.cork();
    this.#http.write(prefixOf(message));
    this.#http.end(message);
    this.end();
  }

  override _write(message: Uint8Array, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.#http.destroyed || this.#http.writableEnded) {
      done();
      return;
    }
    this.#http.cork();
    this.#http.write(prefixOf(message));
    this.#http.write(message, () => done());
    this.#http.uncork();
  }

  override _final(done: () => void): void {
    if (this.#http.destroyed || this.#http.writableEnded) done();
    // The server may have ended the call before it has read everything: its status tells the outcome.
    else this.#http.end(() => done());
  }

  override read(count?: number): unknown {
    const message: unknown = super.read(count);
    const failure = this.#failure;
    if (failure !== undefined && this.readableLength === 0) queueMicrotask(() => this.destroy(failure));
    return message;
  }

  override _read(): void {
    this.#http.resume();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#isEndedByServer) this.#endAfterServer();
    else if (!this.#http.destroyed) this.#http.close(NGHTTP2_CANCEL);
    done(error);
  }

  #take(bytes: Buffer): void {
    this.#unread.push(bytes);
    this.#unreadBytes += bytes.length;
    while (this.#unreadBytes >= this.#neededBytes && !this.destroyed) {
      const all = this.#unread.length === 1 ? this.#unread[0]! : Buffer.concat(this.#unread, this.#unreadBytes);
      const lengthBytes = all.readUInt32BE(1);
      if (all.readUInt8(0) !== 0) return this.cancel(GrpcCode.internal, 'the server compressed a message unasked');
      if (lengthBytes > this.#maxMessageBytes) {
        const words = `Received message larger than max (${lengthBytes} vs ${this.#maxMessageBytes})`;
        return this.cancel(GrpcCode.resourceExhausted, words);
      }
      const end = prefixBytes + lengthBytes;
      this.#neededBytes = all.length < end ? end : prefixBytes;
      this.#unread = [all];
      if (all.length < end) return;
      const rest = all.subarray(end);
      this.#unread = rest.length === 0 ? [] : [rest];
      this.#unreadBytes = rest.length;
      if (!this.push(all.subarray(prefixBytes, end))) this.#http.pause();
    }
  }

  #takeHeaders(headers: IncomingHttpHeaders): void {
    this.#httpStatus = Number(headers[':status']);
    this.#takeStatus(headers);
  }

  #takeStatus(headers: IncomingHttpHeaders): void {
    const text = headers['grpc-status'];
    if (typeof text !== 'string') return;
    const code = /^\d{1,9}$/.test(text) ? Number(text) : GrpcCode.unknown;
    const trailers: Record<string, string> = {};
    for (const [name, value] of Object.entries(headers)) if (typeof value === 'string') trailers[name] = value;
    this.#status = { code, details: decodedMessage(headers['grpc-message']), trailers };
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#isEndedByServer = true;
    const status = this.#status ?? this.#statusOfEnd();
    if (status.code === GrpcCode.ok && this.#unreadBytes > 0) {
      const words = 'the server ended the call in the middle of a message';
      this.#failWhenRead(new GrpcCallError(GrpcCode.internal, words, { wasSent: true }));
      return;
    }
    if (status.code === GrpcCode.ok) {
      this.push(null);
      // A server may end a call before its client has sent everything.
      if (!this.writableEnded) this.end();
      this.#endAfterServer();
      return;
    }
    const options = { wasSent: !this.#isRefused(), trailers: status.trailers ?? {} };
    this.#failWhenRead(new GrpcCallError(status.code, status.details, options));
  }

  /**
   * Ends this side of a call that the server has ended. With END_STREAM: a server limits the resets of a connection, to
   * 33 a second on Node 20, and counts even those of finished calls. Only a request that the server has not taken is
   * reset. At the end of the response HTTP/2 has not yet closed a stream whose request was sent, so a later turn of the
   * event loop decides.
   */
  #endAfterServer(): void {
    const http = this.#http;
    if (http.destroyed || http.closed) return;
    if (!http.writableEnded) http.end();
    if (http.writableLength === 0) return;
    setImmediate(() => {
      if (!http.closed && http.writableLength > 0) http.close(NGHTTP2_CANCEL);
    });
  }

  /** Whether the server has reported that it did not begin the call, and has not answered it either. */
  #isRefused(): boolean {
    if (this.#status !== undefined || this.#httpStatus !== 0 || this.#isConnectionBroken) return false;
    return this.#http.rstCode === NGHTTP2_REFUSED_STREAM;
  }

  /** The status of a call that ended without one. */
  #statusOfEnd(): CallStatus {
    if (this.#httpStatus !== 0 && this.#httpStatus !== 200) {
      const details = `Received HTTP status code ${this.#httpStatus}`;
      return { code: codeOfHttp[this.#httpStatus] ?? GrpcCode.unknown, details };
    }
    const { rstCode } = this.#http;
    const isReset = rstCode !== undefined && rstCode !== NGHTTP2_NO_ERROR;
    if (this.#httpStatus === 200 && !isReset && this.#http.readableEnded) {
      return { code: GrpcCode.unknown, details: 'the server ended the call without a status' };
    }
    // Node ends the calls of a broken connection as if they had been cancelled.
    if (!isReset || this.#http.session === undefined || this.#http.session.destroyed) {
      return { code: GrpcCode.unavailable, details: 'Connection dropped' };
    }
    const code = rstCode === NGHTTP2_CANCEL ? GrpcCode.cancelled : GrpcCode.unavailable;
    return { code, details: `the stream was reset with code ${rstCode}` };
  }

  #failWhenRead(error: GrpcCallError): void {
    this.#failure = error;
    if (this.readableLength === 0) this.destroy(error);
  }
}

/** Not compressed, and the length. */
function prefixOf(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(prefixBytes);
  prefix.writeUInt32BE(message.length, 1);
  return prefix;
}

/** Percent-encoded by the server; a text that is not is used unchanged. */
function decodedMessage(text: string | string[] | undefined): string {
  if (typeof text !== 'string') return '';
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The socket of a session is a proxy, which answers for each property of the socket. */
function isTls(socket: Socket | TLSSocket): socket is TLSSocket {
  return typeof (socket as Partial<TLSSocket>).exportKeyingMaterial === 'function';
}
