import { FrameConnection } from './frame-connection.ts';
import { FrameReader } from './grpc-frames.ts';

export interface MessageStreamsOptions {
  /** host:port. */
  readonly address: string;
  readonly path: string;
  /** Their number; the streams count from 0. */
  readonly streams: number;
  /** A message without gRPC's prefix, valid during the call. */
  readonly onMessage: (stream: number, message: Buffer) => void;
}

/** gRPC streams of one connection that stay open until this side closes it, on frames written by hand. */
export class MessageStreams {
  /** Rejects when the connection, or one of the streams, ends before `close`. */
  readonly closed: Promise<void>;
  readonly #connection: FrameConnection;
  readonly #path: string;
  readonly #readers: readonly FrameReader[];
  readonly #ids: number[] = [];
  #connected = (): void => {};

  private constructor({ address, path, streams, onMessage }: MessageStreamsOptions) {
    this.#path = path;
    this.#readers = Array.from(
      { length: streams },
      (_, stream) => new FrameReader((message) => onMessage(stream, message)),
    );
    let settle = (_error?: Error): void => {};
    this.closed = new Promise((resolve, reject) => {
      settle = (error) => (error === undefined ? resolve() : reject(error));
    });
    this.closed.catch(() => {});
    this.#connection = new FrameConnection(address, path, {
      onConnect: () => this.#openAll(streams),
      onData: (streamId, data) => this.#readers[this.#ids.indexOf(streamId)]?.push(data),
      onEnd: () => {
        throw new Error(`the server ended a stream of ${this.#path}`);
      },
      onClose: (error) => settle(error),
    });
  }

  static async open(options: MessageStreamsOptions): Promise<MessageStreams> {
    const streams = new MessageStreams(options);
    const connected = new Promise<void>((resolve) => (streams.#connected = resolve));
    await Promise.race([connected, streams.closed]);
    return streams;
  }

  /** Sends framed messages; they leave with the next flush, or at the end of the handler of a message. */
  send(stream: number, framed: Buffer): void {
    const id = this.#ids[stream];
    if (id === undefined) throw new Error(`there is no stream ${stream}`);
    this.#connection.send(id, framed);
  }

  flush(): void {
    this.#connection.flush();
  }

  close(): void {
    this.#connection.close();
  }

  #openAll(count: number): void {
    for (let stream = 0; stream < count; stream += 1) this.#ids.push(this.#connection.openStream());
    this.#connected();
  }
}

/** Resolves with `work`, or rejects when one of the connections ends before. */
export async function whileOpen(connections: readonly MessageStreams[], work: Promise<void>): Promise<void> {
  const ends = connections.map(async ({ closed }) => {
    await closed;
    throw new Error('a connection was closed before its work was done');
  });
  await Promise.race([work, ...ends]);
}
