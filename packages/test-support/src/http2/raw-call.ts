import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';

/** The raw response of a server to one call. */
export interface RawReply {
  readonly headers: IncomingHttpHeaders;
  /** Where the gRPC status is: the trailers, or the headers when nothing else was sent. */
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The code with which the server closed the stream. */
  readonly resetCode: number;
}

export interface RawCall {
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  /** Each becomes one or more DATA frames; the last carries END_STREAM. */
  readonly chunks?: readonly Buffer[];
  /** Leaves the request open after its chunks. */
  readonly keepOpen?: boolean;
}

/** One HTTP/2 connection that sends exactly the bytes that a test needs, valid or not. */
export class RawClient {
  readonly session: ClientHttp2Session;

  constructor(port: number) {
    this.session = connect(`http://127.0.0.1:${port}`);
    this.session.on('error', () => {});
  }

  /** Makes a call and waits until its stream is closed. Rejects only when the connection fails. */
  call({ path, headers = {}, chunks = [], keepOpen = false }: RawCall): Promise<RawReply> {
    const stream = this.session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
    let responseHeaders: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders | undefined;
    const body: Buffer[] = [];
    stream.on('response', (received) => (responseHeaders = received));
    stream.on('trailers', (received) => (trailers = received));
    stream.on('data', (chunk: Buffer) => body.push(chunk));
    stream.on('error', () => {});
    for (const chunk of chunks) stream.write(chunk);
    if (!keepOpen) stream.end();
    return new Promise((resolve) => {
      stream.on('close', () =>
        resolve({
          headers: responseHeaders,
          trailers: trailers ?? responseHeaders,
          body: Buffer.concat(body),
          resetCode: stream.rstCode ?? 0,
        }),
      );
    });
  }

  close(): Promise<void> {
    if (this.session.closed || this.session.destroyed) return Promise.resolve();
    return new Promise((resolve) => this.session.close(() => resolve()));
  }
}

/** A gRPC message with its prefix. */
export function frameMessage(body: Buffer, flag = 0): Buffer {
  const framed = Buffer.alloc(5 + body.length);
  framed[0] = flag;
  framed.writeUInt32BE(body.length, 1);
  body.copy(framed, 5);
  return framed;
}
