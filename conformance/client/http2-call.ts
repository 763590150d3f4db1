import { connect, type IncomingHttpHeaders } from 'node:http2';

const prefixBytes = 5;

export interface Http2Outcome {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  /** The messages' bytes, each after gRPC's prefix of five. */
  readonly body: Buffer;
  readonly elapsedMs: number;
}

/** A message after gRPC's prefix: whether it is compressed, and its length. */
export function framed(message: Uint8Array, compressed = false): Buffer {
  const prefix = Buffer.alloc(prefixBytes);
  prefix.writeUInt8(compressed ? 1 : 0, 0);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/**
 * A gRPC call by hand over HTTP/2: everything that a gRPC library would do by itself (such as ending a call at its
 * deadline) is left to the server. Resolves when the server has ended the stream.
 */
export function http2Call(
  address: string,
  path: string,
  options: { headers?: Record<string, string | string[]>; body?: Buffer; halfClose: boolean },
): Promise<Http2Outcome> {
  const session = connect(`http://${address}`);
  const sentAt = performance.now();
  return new Promise((resolve, reject) => {
    session.on('error', reject);
    const stream = session.request(
      { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers', ...options.headers },
      { endStream: false },
    );
    let headers: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    stream.on('response', (received) => (headers = received));
    stream.on('trailers', (received) => (trailers = received));
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    const ended = (): void => {
      resolve({ headers, trailers, body: Buffer.concat(chunks), elapsedMs: performance.now() - sentAt });
      // A gRPC client closes its side when the server has ended the call; the server need not wait for it.
      stream.close();
      session.close();
    };
    stream.on('end', ended);
    stream.on('close', ended);
    if (options.body !== undefined) stream.write(options.body);
    if (options.halfClose) stream.end();
  });
}
