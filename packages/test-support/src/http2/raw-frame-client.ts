import { connect, type Socket } from 'node:net';
import {
  endHeaders,
  endStream,
  frameTypes,
  grpcHeaders,
  headerBlock,
  http2Frame,
  http2Preface,
  settingsFrame,
} from './http2-frames.ts';
import { frameMessage } from './raw-call.ts';

export interface ReadFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** A client that writes frames as bytes, keeps no rule of HTTP/2, and says which frames it has read. */
export class RawFrameClient {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  readonly read: ReadFrame[] = [];
  #unread: Buffer = Buffer.alloc(0);
  #waiting: { readonly matches: (frame: ReadFrame) => boolean; readonly resolve: (frame: ReadFrame) => void }[] = [];

  /** Sends the preface and SETTINGS at once. `socket`: one that is connected, or will be. */
  constructor(port: number, settings: readonly (readonly [number, number])[] = [], socket?: Socket) {
    this.socket = socket ?? connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('error', () => {});
    this.socket.on('data', (chunk: Buffer) => this.#received(chunk));
    this.closed = new Promise((resolve) => this.socket.on('close', () => resolve()));
    this.socket.write(Buffer.concat([http2Preface, settingsFrame(...settings)]));
  }

  send(...frames: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /** The next frame of this type that has not been read, or that comes. */
  next(type: number, streamId?: number): Promise<ReadFrame> {
    const matches = (frame: ReadFrame): boolean =>
      frame.type === type && (streamId === undefined || frame.streamId === streamId);
    const at = this.read.findIndex(matches);
    const found = this.read[at];
    if (found !== undefined) {
      this.read.splice(at, 1);
      return Promise.resolve(found);
    }
    return new Promise((resolve) => this.#waiting.push({ matches, resolve }));
  }

  /** When the server has processed all that was sent before, and has written its answers to that. */
  async settled(): Promise<void> {
    this.send(http2Frame(frameTypes.settings, 0, 0));
    // The acknowledgement of the first SETTINGS may come before.
    for (;;) {
      const { flags } = await this.next(frameTypes.settings);
      if (flags === 1 && (this.#acks += 1) > this.#settled) break;
    }
    this.#settled += 1;
  }

  /** Acknowledgements that have been read, and that belong to the first SETTINGS and to calls of `settled`. */
  #acks = 0;
  #settled = 1;

  close(): void {
    this.socket.destroy();
  }

  #received(chunk: Buffer): void {
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    let at = 0;
    while (at + 9 <= this.#unread.length) {
      const end = at + 9 + this.#unread.readUIntBE(at, 3);
      if (end > this.#unread.length) break;
      const type = this.#unread[at + 3] ?? 0;
      const flags = this.#unread[at + 4] ?? 0;
      const streamId = this.#unread.readUInt32BE(at + 5);
      this.#found({ type, flags, streamId, payload: this.#unread.subarray(at + 9, end) });
      at = end;
    }
    this.#unread = this.#unread.subarray(at);
  }

  #found(frame: ReadFrame): void {
    const at = this.#waiting.findIndex(({ matches }) => matches(frame));
    const [waiting] = at < 0 ? [] : this.#waiting.splice(at, 1);
    if (waiting === undefined) this.read.push(frame);
    else waiting.resolve(frame);
  }
}

/** HEADERS of a call whose messages follow. */
export function openFrame(streamId: number, path: string): Buffer {
  return http2Frame(frameTypes.headers, endHeaders, streamId, headerBlock(grpcHeaders(path)));
}

/** A call with its one message. */
export function callFrames(streamId: number, path: string, message: Buffer = Buffer.from('x')): Buffer {
  const data = http2Frame(frameTypes.data, endStream, streamId, frameMessage(message));
  return Buffer.concat([openFrame(streamId, path), data]);
}

export function dataFrame(streamId: number, payload: Buffer, flags = 0): Buffer {
  return http2Frame(frameTypes.data, flags, streamId, payload);
}

export function windowUpdate(streamId: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return http2Frame(frameTypes.windowUpdate, 0, streamId, payload);
}

export function repeat(count: number, frame: (index: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, index) => frame(index)));
}
