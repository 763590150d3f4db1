import type { ReceivedHead } from '../http2/request-head-reader.ts';
import { BidiCall } from './bidi-call.ts';
import type { Connection } from './connection.ts';
import { HttpCall } from './http-call.ts';
import type { HttpStreams } from './http-stream.ts';
import { Http2HttpStream } from './http2-http-stream.ts';
import { RefusedCall } from './refused-call.ts';
import { isGrpcContentType, readRequestHead, RefusedHead, type RequestHead } from './request-head.ts';
import { ServerStreamCall } from './server-stream-call.ts';
import type { StreamCall } from './stream-call.ts';
import type { GrpcRoutes } from './call.ts';
import { UnaryCall } from './unary-call.ts';

/** What the headers of a request ask for. The same headers always ask for the same, so it is found out once. */
type Meaning = RequestHead | RefusedHead | 'http' | 'http stream';

/** Creates the call of a new stream: of its kind, or one that is refused. */
export function createCall(
  id: number,
  head: ReceivedHead,
  connection: Connection,
  routes: GrpcRoutes,
  httpStreams?: HttpStreams,
): StreamCall {
  const { headers } = head;
  const meaning = (head.meaning ??= meaningOf(head, routes, httpStreams)) as Meaning;
  if (meaning === 'http') return new HttpCall(id, headers, connection);
  if (meaning instanceof RefusedHead) return new RefusedCall(id, headers, meaning, connection);
  if (meaning === 'http stream') {
    if (httpStreams === undefined) throw new Error('no HTTP streams are served');
    return new Http2HttpStream(id, headers, connection, httpStreams);
  }
  const { method } = meaning;
  if (method.kind === 'unary') return new UnaryCall(id, headers, meaning, connection, method.handle);
  if (method.kind === 'bidi') return new BidiCall(id, headers, meaning, connection, method.handle);
  return new ServerStreamCall(id, headers, meaning, connection, method.handle);
}

function meaningOf({ headers }: ReceivedHead, routes: GrpcRoutes, httpStreams: HttpStreams | undefined): Meaning {
  const isGrpc = isGrpcContentType(headers['content-type']);
  if (!isGrpc && httpStreams?.serves(headers[':path'] ?? '') === true) return 'http stream';
  if (!isGrpc && headers[':method'] !== 'POST') return 'http';
  return readRequestHead(headers, routes);
}
