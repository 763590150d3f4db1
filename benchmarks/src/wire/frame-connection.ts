import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** What happens on a connection, and on its streams. An error thrown by any of these ends the connection. */
export interface FrameHandler {
  onConnect(): void;
  onData(streamId: number, data: Buffer): void;
  /** The server has ended the stream: with its trailers, or with its data. */
  onEnd(streamId: number): void;
  /** After each chunk from the server, when all of its frames were handled. */
  onChunk?(): void;
  /** Once; without an error only after `close`. */
  onClose(error?: Error): void;
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const frameHeaderBytes = 9;
/** The largest frame that every server takes (RFC 9113, 4.2). */
const maxFrameBytes = 16_384;
/** What each side may send before the other has granted more (RFC 9113, 6.9.2). */
export const initialWindowBytes = 65_535;
/** The windows of this side, which are filled up at their half. */
const ownStreamWindowBytes = initialWindowBytes * 16;
const ownConnectionWindowBytes = 2 ** 30;
const type = { data: 0, headers: 1, rstStream: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 } as const;
const flag = { endStream: 1, ack: 1, endHeaders: 4 } as const;
const setting = { headerTableSize: 1, initialWindowSize: 4 } as const;

/** Bytes that may still be sent, and bytes received since the window was filled up. */
interface Windows {
  sendable: number;
  received: number;
}

/**
 * An HTTP/2 connection whose frames are written by hand, since a client on node:http2 would be slower than the measured
 * server: the header block is the same bytes for each stream, and frames leave in one write. It sends no more than the
 * server's windows allow: a load that would have to wait for them fails instead.
 */
export class FrameConnection {
  readonly #handler: FrameHandler;
  readonly #headerBlock: Buffer;
  readonly #socket: Socket;
  /** Of the streams that stay open: a unary request fits into its window as it opens. */
  readonly #streams = new Map<number, Windows>();
  readonly #own: Windows = { sendable: initialWindowBytes, received: 0 };
  #peerStreamWindowBytes = initialWindowBytes;
  #nextStreamId = 1;
  #pending: Buffer = Buffer.alloc(0);
  #out: Buffer[] = [];
  #isClosed = false;

  /** `address` is host:port, `path` that of all calls. */
  constructor(address: string, path: string, handler: FrameHandler) {
    this.#handler = handler;
    this.#headerBlock = headerBlock(path, address);
    const [host, port] = address.split(':');
    this.#socket = connect({ host: host ?? '127.0.0.1', port: Number(port), noDelay: true });
    this.#socket.on('connect', () => this.#guard(() => this.#begin()));
    this.#socket.on('data', (chunk) => this.#guard(() => this.#receive(chunk)));
    this.#socket.on('error', (error) => this.close(error));
    this.#socket.on('close', () => this.close(new Error(`the server closed the connection (${path})`)));
  }

  /** Opens a stream with the one message of a unary call, and returns its id. */
  call(framed: Buffer): number {
    if (framed.length > maxFrameBytes) throw new Error('a request does not fit into one frame');
    const id = this.#open();
    this.#take(this.#own, framed.length);
    this.#out.push(frameHeader(framed.length, type.data, flag.endStream, id), Buffer.from(framed));
    return id;
  }

  /** Opens a stream that stays open, and returns its id. */
  openStream(): number {
    const id = this.#open();
    this.#streams.set(id, { sendable: this.#peerStreamWindowBytes, received: 0 });
    return id;
  }

  /** Sends messages on a stream that is open. */
  send(streamId: number, framed: Buffer): void {
    const windows = this.#streams.get(streamId);
    if (windows === undefined) throw new Error(`stream ${streamId} is not open`);
    this.#take(windows, framed.length);
    this.#take(this.#own, framed.length);
    for (let at = 0; at < framed.length; at += maxFrameBytes) {
      const part = framed.subarray(at, at + maxFrameBytes);
      this.#out.push(frameHeader(part.length, type.data, 0, streamId), part);
    }
  }

  /** Writes what was sent. Within a handler this happens by itself. */
  flush(): void {
    if (this.#out.length > 0) this.#socket.write(Buffer.concat(this.#out));
    this.#out = [];
  }

  close(error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.destroy();
    this.#handler.onClose(error);
  }

  #guard(action: () => void): void {
    if (this.#isClosed) return;
    try {
      action();
      if (!this.#isClosed) this.flush();
    } catch (error) {
      this.close(error as Error);
    }
  }

  #begin(): void {
    const settings = Buffer.alloc(12);
    settings.writeUInt16BE(setting.headerTableSize, 0);
    settings.writeUInt16BE(setting.initialWindowSize, 6);
    settings.writeUInt32BE(ownStreamWindowBytes, 8);
    this.#out.push(preface, frameHeader(settings.length, type.settings, 0, 0), settings);
    this.#fillUp(0, ownConnectionWindowBytes - initialWindowBytes);
    this.#handler.onConnect();
  }

  #open(): number {
    const id = this.#nextStreamId;
    this.#nextStreamId += 2;
    this.#out.push(frameHeader(this.#headerBlock.length, type.headers, flag.endHeaders, id), this.#headerBlock);
    return id;
  }

  #take(windows: Windows, bytes: number): void {
    windows.sendable -= bytes;
    if (windows.sendable < 0) throw new Error('the load does not fit into the window that the server grants');
  }

  #receive(chunk: Buffer): void {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    let at = 0;
    while (bytes.length - at >= frameHeaderBytes) {
      const end = at + frameHeaderBytes + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      this.#onFrame(bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, bytes.readUInt32BE(at + 5), bytes.subarray(at + 9, end));
      if (this.#isClosed) return;
      at = end;
    }
    this.#pending = bytes.subarray(at);
    this.#handler.onChunk?.();
  }

  #onFrame(kind: number, flags: number, streamId: number, payload: Buffer): void {
    if (kind === type.data) {
      this.#onData(streamId, payload);
    } else if (kind === type.windowUpdate) {
      const windows = streamId === 0 ? this.#own : this.#streams.get(streamId);
      if (windows !== undefined) windows.sendable += payload.readUInt32BE(0);
    } else if (kind === type.settings && (flags & flag.ack) === 0) {
      this.#onSettings(payload);
      this.#out.push(frameHeader(0, type.settings, flag.ack, 0));
    } else if (kind === type.ping && (flags & flag.ack) === 0) {
      this.#out.push(frameHeader(8, type.ping, flag.ack, 0), Buffer.from(payload));
    } else if (kind === type.rstStream || kind === type.goAway) {
      throw new Error(`the server refused (frame ${kind}, code ${payload.readUInt32BE(kind === type.goAway ? 4 : 0)})`);
    }
    const mayEnd = kind === type.headers || kind === type.data;
    if (mayEnd && (flags & flag.endStream) !== 0) {
      this.#streams.delete(streamId);
      this.#handler.onEnd(streamId);
    }
  }

  #onData(streamId: number, payload: Buffer): void {
    this.#handler.onData(streamId, payload);
    const windows = this.#streams.get(streamId);
    if (windows !== undefined) this.#count(windows, streamId, payload.length, ownStreamWindowBytes);
    this.#count(this.#own, 0, payload.length, ownConnectionWindowBytes);
  }

  #count(windows: Windows, streamId: number, bytes: number, windowBytes: number): void {
    windows.received += bytes;
    if (windows.received < windowBytes / 2) return;
    this.#fillUp(streamId, windows.received);
    windows.received = 0;
  }

  #fillUp(streamId: number, bytes: number): void {
    const increment = Buffer.alloc(4);
    increment.writeUInt32BE(bytes, 0);
    this.#out.push(frameHeader(4, type.windowUpdate, 0, streamId), increment);
  }

  #onSettings(payload: Buffer): void {
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      if (payload.readUInt16BE(at) !== setting.initialWindowSize) continue;
      const bytes = payload.readUInt32BE(at + 2);
      for (const windows of this.#streams.values()) windows.sendable += bytes - this.#peerStreamWindowBytes;
      this.#peerStreamWindowBytes = bytes;
    }
  }
}

function frameHeader(length: number, kind: number, flags: number, streamId: number): Buffer {
  const header = Buffer.alloc(frameHeaderBytes);
  header.writeUIntBE(length, 0, 3);
  header[3] = kind;
  header[4] = flags;
  header.writeUInt32BE(streamId, 5);
  return header;
}

/** The headers of a request as HPACK literals without indexing: the same bytes for every request, without a table. */
function headerBlock(path: string, authority: string): Buffer {
  const literal = (name: string, value: string) => {
    if (name.length > 126 || value.length > 126) throw new Error(`the header ${name} is too long for one length byte`);
    return Buffer.from(
      `\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`,
      'latin1',
    );
  };
  return Buffer.concat([
    literal(':method', 'POST'),
    literal(':scheme', 'http'),
    literal(':path', path),
    literal(':authority', authority),
    literal('content-type', 'application/grpc'),
    literal('te', 'trailers'),
  ]);
}
