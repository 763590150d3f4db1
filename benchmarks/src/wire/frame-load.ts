import { connect } from 'node:net';
import type { Socket } from 'node:net';

/**
 * A unary load in which every request differs, which h2load cannot send. It writes HTTP/2 frames by hand, since a
 * client on node:http2 would be slower than the measured server: the header block is the same bytes each time, and a
 * reply counts as successful when its stream ended and had a message (gRPC sends none with an error).
 */
export interface FrameLoadOptions {
  /** host:port, one or several: the connections are distributed over them in turn. */
  readonly address: string | readonly string[];
  readonly path: string;
  readonly requests: number;
  readonly connections: number;
  readonly streamsPerConnection: number;
  /** The framed message of request `index`; used at once, so the same buffer may be returned again. */
  readonly framedRequest: (index: number) => Buffer;
  /** Receives the message of each successful reply, without gRPC's prefix. */
  readonly onReply?: (index: number, message: Buffer) => void;
}

export interface FrameLoadResult {
  readonly seconds: number;
  readonly perSecond: number;
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const windowIncrement = 2 ** 30;
const frameHeaderBytes = 9;
/**
 * The amount of data that a server accepts before it has read anything (RFC 9113, 6.9.2): requests must stay below half
 * of it.
 */
const initialWindowBytes = 65_535;
const type = { data: 0, headers: 1, rstStream: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 } as const;
const flag = { endStream: 1, ack: 1, endHeaders: 4 } as const;

export async function runFrameLoad(options: FrameLoadOptions): Promise<FrameLoadResult> {
  let next = 0;
  const takeIndex = (): number | undefined => (next < options.requests ? next++ : undefined);
  const addresses = [options.address].flat();
  const connections = Array.from({ length: options.connections }, (_, at) => addresses[at % addresses.length] ?? '');
  const startedMs = performance.now();
  await Promise.all(connections.map((address) => new LoadConnection(options, address, takeIndex).run()));
  const seconds = (performance.now() - startedMs) / 1000;
  return { seconds, perSecond: options.requests / seconds };
}

class LoadConnection {
  readonly #options: FrameLoadOptions;
  readonly #takeIndex: () => number | undefined;
  readonly #headerBlock: Buffer;
  readonly #socket: Socket;
  readonly #underWay = new Map<number, { readonly index: number; message: Buffer }>();
  #nextStreamId = 1;
  #pending: Buffer = Buffer.alloc(0);
  #out: Buffer[] = [];
  #finish: (error?: Error) => void = () => {};

  constructor(options: FrameLoadOptions, address: string, takeIndex: () => number | undefined) {
    this.#options = options;
    this.#takeIndex = takeIndex;
    this.#headerBlock = headerBlock(options.path, address);
    const [host, port] = address.split(':');
    this.#socket = connect({ host: host ?? '127.0.0.1', port: Number(port), noDelay: true });
  }

  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#finish = (error) => {
        this.#socket.destroy();
        if (error === undefined) resolve();
        else reject(error);
      };
      this.#socket.on('connect', () => this.#begin());
      this.#socket.on('data', (chunk) => this.#receive(chunk));
      this.#socket.on('error', (error) => this.#finish(error));
      this.#socket.on('close', () =>
        this.#finish(new Error(`the server closed the connection (${this.#options.path})`)),
      );
    });
  }

  #begin(): void {
    const settings = Buffer.alloc(12);
    settings.writeUInt16BE(1, 0); // HEADER_TABLE_SIZE 0
    settings.writeUInt16BE(4, 6); // INITIAL_WINDOW_SIZE
    settings.writeUInt32BE(initialWindowBytes * 16, 8);
    const increment = Buffer.alloc(4);
    increment.writeUInt32BE(windowIncrement, 0);
    this.#out.push(preface, frameHeader(settings.length, type.settings, 0, 0), settings);
    this.#out.push(frameHeader(4, type.windowUpdate, 0, 0), increment);
    for (let count = 0; count < this.#options.streamsPerConnection; count += 1) this.#startNext();
    this.#flush();
    if (this.#underWay.size === 0) this.#finish();
  }

  #startNext(): void {
    const index = this.#takeIndex();
    if (index === undefined) return;
    const body = this.#options.framedRequest(index);
    if (body.length * this.#options.streamsPerConnection > initialWindowBytes / 2) {
      throw new Error('the requests under way do not fit the window that HTTP/2 opens with');
    }
    const id = this.#nextStreamId;
    this.#nextStreamId += 2;
    this.#underWay.set(id, { index, message: Buffer.alloc(0) });
    this.#out.push(frameHeader(this.#headerBlock.length, type.headers, flag.endHeaders, id), this.#headerBlock);
    this.#out.push(frameHeader(body.length, type.data, flag.endStream, id), Buffer.from(body));
  }

  #flush(): void {
    if (this.#out.length > 0) this.#socket.write(Buffer.concat(this.#out));
    this.#out = [];
  }

  #receive(chunk: Buffer): void {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    let at = 0;
    try {
      while (bytes.length - at >= frameHeaderBytes) {
        const end = at + frameHeaderBytes + bytes.readUIntBE(at, 3);
        if (end > bytes.length) break;
        this.#onFrame(bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, bytes.readUInt32BE(at + 5), bytes.subarray(at + 9, end));
        at = end;
      }
    } catch (error) {
      this.#finish(error as Error);
      return;
    }
    this.#pending = bytes.subarray(at);
    this.#flush();
    if (this.#underWay.size === 0) this.#finish();
  }

  #onFrame(kind: number, flags: number, streamId: number, payload: Buffer): void {
    if (kind === type.data) {
      const call = this.#underWay.get(streamId);
      if (call !== undefined)
        call.message = call.message.length === 0 ? payload : Buffer.concat([call.message, payload]);
    } else if (kind === type.settings && (flags & flag.ack) === 0) {
      this.#out.push(frameHeader(0, type.settings, flag.ack, 0));
    } else if (kind === type.ping && (flags & flag.ack) === 0) {
      this.#out.push(frameHeader(8, type.ping, flag.ack, 0), Buffer.from(payload));
    } else if (kind === type.rstStream || kind === type.goAway) {
      throw new Error(`the server refused (frame ${kind}, code ${payload.readUInt32BE(kind === type.goAway ? 4 : 0)})`);
    }
    const mayEnd = kind === type.headers || kind === type.data;
    if (mayEnd && (flags & flag.endStream) !== 0) this.#onEnd(streamId);
  }

  #onEnd(streamId: number): void {
    const call = this.#underWay.get(streamId);
    if (call === undefined) throw new Error(`the server ended stream ${streamId}, which was not open`);
    this.#underWay.delete(streamId);
    if (call.message.length < 5) throw new Error(`request ${call.index} of ${this.#options.path} was refused`);
    this.#options.onReply?.(call.index, call.message.subarray(5));
    this.#startNext();
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
