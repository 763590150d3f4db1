import { connect, type Socket } from 'node:net';
import { frameTypes, http2Frame, http2Preface, settingsFrame } from './http2-frames.ts';

const frameHeadBytes = 9;

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** An HTTP/2 connection whose client sends any bytes, and sees the frames of the server as they are. */
export class FrameClient {
  readonly socket: Socket;
  /** All frames so far, but for those that `next` has taken. */
  readonly frames: ReceivedFrame[] = [];
  /** Called for each frame. */
  onFrame: (frame: ReceivedFrame) => void = () => {};
  isClosed = false;
  readonly closed: Promise<void>;
  #waiting: (() => void)[] = [];
  /** Frames so far, acknowledgements of SETTINGS among them, and calls of `settled`. */
  #received = 0;
  #acks = 0;
  #settled = 0;
  #rest: Buffer = Buffer.alloc(0);

  /** `socket`: one that is connected, or will be. */
  constructor(port: number, socket?: Socket) {
    this.socket = socket ?? connect({ port, host: '127.0.0.1', noDelay: true });
    // The server may reset the connection of a client that it gives up.
    this.socket.on('error', () => {});
    this.socket.on('data', (chunk: Buffer) => this.#read(chunk));
    this.closed = new Promise((resolve) => {
      this.socket.on('close', () => {
        this.isClosed = true;
        resolve();
        this.#wake();
      });
    });
  }

  /** The preface, and SETTINGS of (identifier, value) pairs. */
  open(...settings: readonly (readonly [number, number])[]): this {
    return this.send(http2Preface, settingsFrame(...settings));
  }

  send(...parts: readonly Buffer[]): this {
    this.socket.write(Buffer.concat(parts));
    return this;
  }

  /** Resolves when the condition holds: it is evaluated after each chunk. Rejects when the connection ends before. */
  async until(isReached: () => boolean, what = 'the awaited frame'): Promise<void> {
    while (!isReached()) {
      if (this.isClosed) throw new Error(`the connection ended before ${what}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** The first frame of this type, or the one after `count` others of it. */
  async frame(type: number, count = 0): Promise<ReceivedFrame> {
    const found = (): ReceivedFrame | undefined => this.frames.filter((frame) => frame.type === type)[count];
    await this.until(() => found() !== undefined, `a frame of type ${type}`);
    const frame = found();
    if (frame === undefined) throw new Error('a frame has vanished');
    return frame;
  }

  /** The next frame of this type that has not been taken, or that comes. */
  async next(type: number, streamId?: number): Promise<ReceivedFrame> {
    for (;;) {
      const at = this.frames.findIndex(
        (frame) => frame.type === type && (streamId === undefined || frame.streamId === streamId),
      );
      const [found] = at < 0 ? [] : this.frames.splice(at, 1);
      if (found !== undefined) return found;
      const seen = this.#received;
      await this.until(() => this.#received > seen, `a frame of type ${type}`);
    }
  }

  /** Resolves when the server has processed what was sent before, and has written its answers: without a PING. */
  async settled(): Promise<void> {
    this.send(http2Frame(frameTypes.settings, 0, 0));
    this.#settled += 1;
    const wanted = this.#settled;
    // The acknowledgement of the first SETTINGS comes before.
    await this.until(() => this.#acks > wanted, 'the acknowledgement of SETTINGS');
  }

  /** Resolves when the server has read everything before: it has answered a PING with this number. */
  async sync(number: number): Promise<void> {
    const payload = Buffer.alloc(8);
    payload.writeUInt32BE(number, 4);
    this.send(http2Frame(frameTypes.ping, 0, 0, payload));
    const isAnswer = (frame: ReceivedFrame): boolean => frame.type === frameTypes.ping && frame.payload.equals(payload);
    await this.until(() => this.frames.some(isAnswer), 'the answer to a PING');
  }

  destroy(): Promise<void> {
    this.socket.destroy();
    return this.closed;
  }

  #read(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= frameHeadBytes && bytes.length >= frameHeadBytes + bytes.readUIntBE(0, 3)) {
      const end = frameHeadBytes + bytes.readUIntBE(0, 3);
      const frame = {
        type: bytes.readUInt8(3),
        flags: bytes.readUInt8(4),
        streamId: bytes.readUInt32BE(5),
        payload: bytes.subarray(frameHeadBytes, end),
      };
      bytes = bytes.subarray(end);
      this.#received += 1;
      if (frame.type === frameTypes.settings && frame.flags === 1) this.#acks += 1;
      this.frames.push(frame);
      this.onFrame(frame);
    }
    this.#rest = bytes;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
