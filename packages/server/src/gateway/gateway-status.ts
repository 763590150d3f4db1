import { exactText } from '@tenure/protocol';
import { GrpcCode, type GrpcStatus } from '@tenure/grpc-server';

const httpStatuses: Readonly<Record<GrpcCode, number>> = {
  [GrpcCode.ok]: 200,
  [GrpcCode.cancelled]: 499,
  [GrpcCode.unknown]: 500,
  [GrpcCode.invalidArgument]: 400,
  [GrpcCode.deadlineExceeded]: 504,
  [GrpcCode.notFound]: 404,
  [GrpcCode.alreadyExists]: 409,
  [GrpcCode.permissionDenied]: 403,
  [GrpcCode.resourceExhausted]: 429,
  [GrpcCode.failedPrecondition]: 400,
  [GrpcCode.aborted]: 409,
  [GrpcCode.outOfRange]: 400,
  [GrpcCode.unimplemented]: 501,
  [GrpcCode.internal]: 500,
  [GrpcCode.unavailable]: 503,
  [GrpcCode.dataLoss]: 500,
  [GrpcCode.unauthenticated]: 401,
};

/** The HTTP status of a gRPC status, as grpc-gateway translates it. */
export function httpStatusOf({ code }: GrpcStatus): number {
  return httpStatuses[code];
}

/** A gRPC status as JSON: the body of a refusal, and what `error` holds in a stream. */
export function statusJson({ code, message }: GrpcStatus): string {
  const text = exactText(message);
  return text === '' ? JSON.stringify({ code }) : JSON.stringify({ code, message: text });
}

/** The refusal that ends a stream of results: its last line. */
export function errorLine(status: GrpcStatus): string {
  return `{"error":${statusJson(status)}}\n`;
}
