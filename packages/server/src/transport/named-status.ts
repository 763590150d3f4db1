import { type GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { errorCatalogue, type ErrorName } from '@tenure/protocol';

/** An error of the catalogue as a gRPC status: etcd's text and code. */
export function statusNamed(name: ErrorName): GrpcStatus {
  const { code, text } = errorCatalogue[name];
  return new GrpcStatus(code satisfies GrpcCode, text);
}
