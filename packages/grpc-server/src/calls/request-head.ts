import type { IncomingHttpHeaders } from 'node:http';
import { binaryMetadataFault } from './binary-metadata.ts';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import { parseGrpcTimeout } from './grpc-timeout.ts';
import type { GrpcRoutes, MethodHandler } from './call.ts';

/** The fields of every call. */
export interface CallHead {
  readonly path: string;
  /** Infinity without a `grpc-timeout`. */
  readonly timeoutMs: number;
}

/** A request whose headers have been accepted. */
export interface RequestHead extends CallHead {
  readonly method: MethodHandler;
  /** The value of `grpc-encoding`, undefined when messages are not compressed. */
  readonly encoding: string | undefined;
}

/** A request whose headers are refused: the HTTP status is for HTTP clients, the gRPC status for gRPC clients. */
export class RefusedHead implements CallHead {
  readonly path: string;
  readonly timeoutMs: number = Infinity;
  readonly httpStatus: number;
  readonly status: GrpcStatus;

  constructor(path: string, httpStatus: number, code: GrpcCode, text: string) {
    this.path = path;
    this.httpStatus = httpStatus;
    this.status = new GrpcStatus(code, text);
  }
}

const grpcContentType = 'application/grpc';

/**
 * True for 'application/grpc', also followed by '+proto' or parameters. Grpc-web has another framing and is not
 * accepted.
 */
export function isGrpcContentType(value: string | undefined): boolean {
  if (value === grpcContentType) return true;
  if (value === undefined || !value.toLowerCase().startsWith(grpcContentType)) return false;
  const next = value[grpcContentType.length];
  return next === undefined || next === '+' || next === ';';
}

/** Checks the headers of a request, in the order and with the texts of Go's gRPC server. */
export function readRequestHead(headers: IncomingHttpHeaders, routes: GrpcRoutes): RequestHead | RefusedHead {
  const path = String(headers[':path'] ?? '');
  const contentType = headers['content-type'];
  if (!isGrpcContentType(contentType)) {
    const text = `invalid gRPC request content-type ${JSON.stringify(contentType ?? '')}`;
    return new RefusedHead(path, 415, GrpcCode.invalidArgument, text);
  }
  const malformed = binaryMetadataFault(headers);
  if (malformed !== undefined) return new RefusedHead(path, 400, malformed.code, malformed.message);
  const verb = headers[':method'] as string | undefined;
  if (verb !== 'POST') {
    const text = `Received a HEADERS frame with :method ${JSON.stringify(verb ?? '')} which should be POST`;
    return new RefusedHead(path, 405, GrpcCode.internal, text);
  }
  const method = routes.get(path);
  if (method === undefined) return new RefusedHead(path, 200, GrpcCode.unimplemented, describeUnknown(path, routes));
  const encoding = headers['grpc-encoding'] as string | undefined;
  if (encoding !== undefined && encoding !== 'identity' && encoding !== 'gzip') {
    const text = `grpc: Decompressor is not installed for grpc-encoding ${JSON.stringify(encoding)}`;
    return new RefusedHead(path, 200, GrpcCode.unimplemented, text);
  }
  const timeout = headers['grpc-timeout'] as string | undefined;
  if (timeout === undefined) return { path, method, timeoutMs: Infinity, encoding };
  try {
    return { path, method, timeoutMs: parseGrpcTimeout(timeout), encoding };
  } catch (error) {
    return new RefusedHead(path, 400, GrpcCode.internal, (error as GrpcStatus).message);
  }
}

function describeUnknown(path: string, routes: GrpcRoutes): string {
  const cut = path.lastIndexOf('/');
  if (!path.startsWith('/') || cut <= 0) return `malformed method name: ${JSON.stringify(path)}`;
  const service = path.slice(1, cut);
  for (const known of routes.keys()) {
    if (known.startsWith(`/${service}/`)) return `unknown method ${path.slice(cut + 1)} for service ${service}`;
  }
  return `unknown service ${service}`;
}
