import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/**
 * An HTTP/2 connection that sends only the given frames: it opens no windows, so that a server cannot send any byte of
 * a body, and discards received data. Frames are written by hand, many in one write, so that a burst costs this side
 * next to nothing.
 */
export class RawConnection {
  readonly #socket: Socket;
  #nextStreamId = 1;
  #isClosed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('error', () => {
      // Its close says so as well.
    });
    socket.on('close', () => (this.#isClosed = true));
  }

  /** `address` is host:port. `windowBytes` is the server's window on each stream. */
  static async open(address: string, { windowBytes }: { readonly windowBytes: number }): Promise<RawConnection> {
    const [host = '', port] = address.split(':');
    const socket = connect({ host, port: Number(port), noDelay: true });
    const connection = new RawConnection(socket);
    await once(socket, 'connect');
    socket.resume();
    const settings = Buffer.alloc(12);
    settings.writeUInt16BE(1, 0); // HEADER_TABLE_SIZE 0
    settings.writeUInt16BE(4, 6); // INITIAL_WINDOW_SIZE
    settings.writeUInt32BE(windowBytes, 8);
    socket.write(Buffer.concat([preface, rawFrame(frameType.settings, 0, 0, settings)]));
    return connection;
  }

  /** True once the server, or this side, has closed it. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when the system has taken the bytes; bytes for a connection that is closed are dropped. */
  send(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isClosed) resolve();
      else this.#socket.write(bytes, () => resolve());
    });
  }

  /** The frames of calls: each opens a stream, sends its message, and then the frames given by `options`. */
  calls(count: number, head: Buffer, message: Buffer, options: CallOptions = {}): Buffer {
    const frames: Buffer[] = [];
    const resets: Buffer[] = [];
    for (let made = 0; made < count; made += 1) {
      const id = this.#nextStreamId;
      this.#nextStreamId += 2;
      const bodiless = message.length === 0;
      frames.push(rawFrame(frameType.headers, flag.endHeaders | (bodiless ? flag.endStream : 0), id, head));
      if (!bodiless)
        frames.push(rawFrame(frameType.data, options.leaveOpen === true ? 0 : flag.endStream, id, message));
      const reset = rawFrame(frameType.rstStream, 0, id, cancelled);
      if (options.reset === 'at once') frames.push(reset);
      if (options.reset === 'when all are open') resets.push(reset);
    }
    return Buffer.concat([...frames, ...resets]);
  }

  close(): void {
    this.#socket.destroy();
  }
}

export interface CallOptions {
  /** The client does not half-close: as a watch is opened. */
  readonly leaveOpen?: boolean;
  readonly reset?: 'at once' | 'when all are open';
}

/** The headers of a call as HPACK literals without indexing: the same bytes for each, without a table. */
export function grpcHead(path: string): Buffer {
  return literals([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'bench'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
  ]);
}

export function httpGetHead(path: string): Buffer {
  return literals([
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'bench'],
  ]);
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const frameType = { data: 0, headers: 1, rstStream: 3, settings: 4 } as const;
const flag = { endStream: 1, endHeaders: 4 } as const;
const cancelled = Buffer.from([0, 0, 0, 8]);
const frameHeaderBytes = 9;

function rawFrame(kind: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(frameHeaderBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = kind;
  bytes[4] = flags;
  bytes.writeUInt32BE(streamId, 5);
  payload.copy(bytes, frameHeaderBytes);
  return bytes;
}

function literals(fields: readonly (readonly [string, string])[]): Buffer {
  const literal = ([name, value]: readonly [string, string]) =>
    Buffer.from(`\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`, 'latin1');
  return Buffer.concat(fields.map(literal));
}
