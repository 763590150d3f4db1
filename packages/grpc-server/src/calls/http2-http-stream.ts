import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { errorCode } from '../http2/frame-type.ts';
import type { Connection } from './connection.ts';
import type { GrpcStatus } from './grpc-status.ts';
import { headerBlockOf } from './http-headers.ts';
import type { HttpStream, HttpStreams } from './http-stream.ts';
import { minStreamBufferBytes, StreamCall, toStatus } from './stream-call.ts';
import type { HttpRequest } from './call.ts';

/** Bytes that were written and have not left, and who is told. */
interface Unsent {
  bytes: number;
  readonly onTaken: () => void;
}

/** An HttpStream over HTTP/2. */
export class Http2HttpStream extends StreamCall implements HttpStream {
  readonly request: HttpRequest;
  onData: (chunk: Buffer) => void = ignore;
  onEnd: () => void = ignore;
  onDrain: () => void = ignore;
  onSweep: () => void = ignore;
  onRefuse: (status: GrpcStatus) => void = ignore;
  onClose: () => void = ignore;
  readonly #streams: HttpStreams;
  readonly #unsent: Unsent[] = [];
  #wantsDrain = false;

  constructor(id: number, headers: IncomingHttpHeaders, connection: Connection, streams: HttpStreams) {
    const target = String(headers[':path'] ?? '');
    super(id, headers, { path: target, timeoutMs: Infinity }, connection);
    this.#streams = streams;
    const method = String(headers[':method'] ?? '');
    this.request = { method, target, headers, isSecure: connection.isSecure };
  }

  start(): void {
    try {
      this.#streams.handle(this);
    } catch (error) {
      toStatus(error, this.connection, this.path);
      this.destroy();
    }
  }

  get bufferedBytes(): number {
    return this.pendingBytes;
  }

  lasts(): void {
    this.connection.lastingCalls.add(this);
  }

  pause(): void {
    this.pauseData();
  }

  resume(): void {
    if (!this.isClosed) this.resumeData();
  }

  respond(status: number, headers: OutgoingHttpHeaders): void {
    this.sendHead(headerBlockOf(status, headers));
  }

  write(bytes: Buffer, onTaken: () => void = ignore): boolean {
    if (this.isClosed || this.isEnding || bytes.length === 0) {
      onTaken();
      return true;
    }
    this.#unsent.push({ bytes: bytes.length, onTaken });
    this.sendData(bytes);
    if (this.pendingBytes < minStreamBufferBytes) return true;
    this.#wantsDrain = true;
    return false;
  }

  end(bytes?: Buffer): void {
    if (this.ended) return;
    this.settle();
    if (this.isClosed) return;
    // Further data of the client is dropped; held data would keep the stream from closing.
    this.resumeData();
    if (bytes !== undefined) this.sendData(bytes);
    this.sendEnd();
  }

  destroy(): void {
    this.reset(errorCode.cancel);
  }

  override refuse(status: GrpcStatus): void {
    if (!this.ended) this.onRefuse(status);
  }

  override sweep(): void {
    if (this.ended) super.sweep();
    this.onSweep();
  }

  override dataSent(bytes: number): void {
    super.dataSent(bytes);
    let left = bytes;
    for (let first = this.#unsent[0]; first !== undefined && left > 0; first = this.#unsent[0]) {
      const sent = Math.min(left, first.bytes);
      first.bytes -= sent;
      left -= sent;
      if (first.bytes > 0) return;
      this.#unsent.shift();
      first.onTaken();
    }
  }

  override drained(): void {
    if (!this.#wantsDrain || this.isClosed) return;
    this.#wantsDrain = false;
    this.onDrain();
  }

  received(chunk: Buffer): void {
    if (!this.ended) this.onData(chunk);
  }

  halfClosed(): void {
    if (!this.ended && !this.isClosed) this.onEnd();
  }

  override held(): void {
    if (this.isClosed) return;
    try {
      this.holdRequest(this.heldBytes);
    } catch (error) {
      this.refuse(toStatus(error, this.connection, this.path));
      if (!this.ended) this.destroy();
    }
  }

  protected sweepUnanswered(): void {}

  protected closed(): void {
    this.connection.lastingCalls.delete(this);
    for (const { onTaken } of this.#unsent.splice(0)) onTaken();
    this.onClose();
  }
}

function ignore(): void {}
