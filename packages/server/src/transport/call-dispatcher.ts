import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { BidiCall } from './bidi-call.ts';
import type { Connection } from './connection.ts';
import { HttpCall } from './http-call.ts';
import type { HttpStreams } from './http-stream.ts';
import { Http2HttpStream } from './http2-http-stream.ts';
import { isGrpcContentType, readRequestHead, RefusedHead, type RequestHead } from './request-head.ts';
import { RefusedCall } from './refused-call.ts';
import { ServerStreamCall } from './server-stream-call.ts';
import type { StreamCall } from './stream-call.ts';
import type { GrpcRoutes } from './transport.ts';
import { UnaryCall } from './unary-call.ts';

/** Starts the call of a new stream, or refuses it. The stream has not been reset. */
export function dispatchStream(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  connection: Connection,
  routes: GrpcRoutes,
  httpStreams?: HttpStreams,
): void {
  if (!isGrpcContentType(headers['content-type']) && httpStreams?.serves(headers[':path'] ?? '') === true) {
    new Http2HttpStream(stream, headers, connection).open(httpStreams);
    return;
  }
  if (headers[':method'] !== 'POST' && !isGrpcContentType(headers['content-type'])) {
    new HttpCall(stream, headers, connection).start();
    return;
  }
  createCall(stream, headers, readRequestHead(headers, routes), connection).start();
}

function createCall(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  head: RequestHead | RefusedHead,
  connection: Connection,
): StreamCall {
  if (head instanceof RefusedHead) return new RefusedCall(stream, headers, head, connection);
  const { method } = head;
  if (method.kind === 'unary') return new UnaryCall(stream, headers, head, connection, method.handle);
  if (method.kind === 'bidi') return new BidiCall(stream, headers, head, connection, method.handle);
  return new ServerStreamCall(stream, headers, head, connection, method.handle);
}
