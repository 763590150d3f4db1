import type { OutgoingHttpHeaders } from 'node:http';
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Connection } from './connection.ts';
import type { GrpcStatus } from './grpc-status.ts';
import type { HttpStream, HttpStreams } from './http-stream.ts';
import { StreamCall, toStatus } from './stream-call.ts';
import type { HttpRequest } from './transport.ts';

/** An HttpStream over HTTP/2. */
export class Http2HttpStream extends StreamCall implements HttpStream {
  readonly request: HttpRequest;
  onData: (chunk: Buffer) => void = ignore;
  onEnd: () => void = ignore;
  onDrain: () => void = ignore;
  onSweep: () => void = ignore;
  onRefuse: (status: GrpcStatus) => void = ignore;
  onClose: () => void = ignore;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, connection: Connection) {
    const target = headers[':path'] ?? '';
    super(stream, headers, { path: target, timeoutMs: Infinity }, connection);
    const isSecure = connection.session.encrypted === true;
    this.request = { method: headers[':method'] ?? '', target, headers, isSecure };
    connection.timedCalls.add(this);
  }

  open(streams: HttpStreams): void {
    try {
      streams.handle(this);
    } catch (error) {
      toStatus(error, this.connection, this.path);
      this.destroy();
      return;
    }
    this.stream.on('drain', () => this.onDrain());
    // A stream that is reset while it is paused closes only when its buffered data has been read.
    this.stream.on('aborted', () => this.stream.resume());
    this.startReading();
  }

  start(): void {}

  get bufferedBytes(): number {
    return this.stream.writableLength;
  }

  lasts(): void {
    this.connection.lastingCalls.add(this);
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    if (!this.isGone) this.stream.resume();
  }

  respond(status: number, headers: OutgoingHttpHeaders): void {
    if (!this.isGone) this.stream.respond({ ':status': status, ...headers });
  }

  write(bytes: Buffer, onTaken: () => void = ignore): boolean {
    if (this.isGone) {
      onTaken();
      return true;
    }
    return this.stream.write(bytes, () => onTaken());
  }

  end(bytes?: Buffer): void {
    if (this.ended) return;
    this.settle();
    if (this.isGone) return;
    // Further data of the client is dropped; unread it would keep the stream from closing.
    this.stream.resume();
    this.stream.end(bytes);
    this.statusSent();
  }

  destroy(): void {
    this.stream.destroy();
  }

  override refuse(status: GrpcStatus): void {
    if (!this.ended) this.onRefuse(status);
  }

  override sweep(): void {
    if (this.ended) super.sweep();
    this.onSweep();
  }

  received(chunk: Buffer): void {
    if (!this.ended) this.onData(chunk);
  }

  halfClosed(): void {
    if (!this.ended && !this.isGone) this.onEnd();
  }

  protected sweepUnanswered(): void {}

  protected closed(): void {
    this.connection.lastingCalls.delete(this);
    this.onClose();
  }
}

function ignore(): void {}
