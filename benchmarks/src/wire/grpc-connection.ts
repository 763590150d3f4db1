import { connect } from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { frame, FrameReader } from './grpc-frames.ts';

const connectionWindowBytes = 64 * 1024 * 1024;
const streamWindowBytes = 16 * 1024 * 1024;
const unaryTimeoutMs = 120_000;

/** One gRPC stream in both directions. `closed` rejects unless the server ends it with status 0. */
export interface GrpcStream {
  send(message: Buffer): void;
  /** Sends messages that are already framed, many in one write. */
  sendFramed(framed: Buffer): void;
  end(): void;
  cancel(): void;
  readonly closed: Promise<void>;
}

/** A gRPC client over node:http2, the same for every measured server. One connection. */
export class GrpcConnection {
  readonly #session: ClientHttp2Session;
  readonly #metadata: Readonly<Record<string, string>>;

  private constructor(session: ClientHttp2Session, metadata: Readonly<Record<string, string>>) {
    this.#session = session;
    this.#metadata = metadata;
  }

  /** `address` is host:port; the metadata goes with each call. */
  static async open(address: string, metadata: Readonly<Record<string, string>> = {}): Promise<GrpcConnection> {
    const session = connect(`http://${address}`, { settings: { initialWindowSize: streamWindowBytes } });
    await new Promise<void>((resolve, reject) => {
      session.once('connect', () => resolve());
      session.once('error', reject);
    });
    session.setLocalWindowSize(connectionWindowBytes);
    session.on('error', () => {
      // Each stream reports it to its caller.
    });
    return new GrpcConnection(session, metadata);
  }

  async unary(path: string, message: Buffer): Promise<Buffer> {
    let reply: Buffer | undefined;
    const stream = this.stream(path, (received) => {
      reply = Buffer.from(received);
    });
    stream.send(message);
    stream.end();
    const timer = setTimeout(() => stream.cancel(), unaryTimeoutMs);
    await stream.closed.finally(() => clearTimeout(timer));
    if (reply === undefined) throw new Error(`${path}: status 0 and no reply`);
    return reply;
  }

  /** A call whose reply is discarded as it arrives, so that a long one costs this side little; returns its size. */
  async discarded(path: string, message: Buffer): Promise<number> {
    const stream = this.#request(path);
    const closed = ended(stream, path);
    let bytes = 0;
    stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
    stream.end(frame(message));
    await closed;
    return bytes;
  }

  stream(path: string, onMessage: (message: Buffer) => void): GrpcStream {
    const stream = this.#request(path);
    const reader = new FrameReader(onMessage);
    const closed = ended(stream, path);
    stream.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        stream.destroy(error as Error);
      }
    });
    // The caller may read `closed` late or never; a failure must not end the process before.
    closed.catch(() => {});
    return {
      send: (message) => void stream.write(frame(message)),
      sendFramed: (framed) => void stream.write(framed),
      end: () => void stream.end(),
      cancel: () => stream.close(),
      closed,
    };
  }

  #request(path: string): ClientHttp2Stream {
    return this.#session.request(
      { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers', ...this.#metadata },
      { endStream: false },
    );
  }

  close(): void {
    this.#session.destroy();
  }
}

function ended(stream: ClientHttp2Stream, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let headers: IncomingHttpHeaders = {};
    stream.on('response', (received) => {
      headers = received;
    });
    stream.on('trailers', (received) => {
      headers = { ...headers, ...received };
    });
    stream.on('error', reject);
    stream.on('close', () => {
      const status = headers['grpc-status'];
      if (status === '0') resolve();
      else reject(new Error(`${path}: status ${status ?? 'unknown'} ${headers['grpc-message'] ?? ''}`));
    });
  });
}
