import { healthpb } from '@tenure/protocol';
import { decodeHealthCheckRequest, encodeFramed } from '@tenure/codec';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';

/** The only known name, as in etcd: it means the server as a whole. */
const wholeServer = '';

/** grpc.health.v1: Check answers SERVING while the server runs; a stopped server does not answer. */
export class HealthService {
  check(request: Buffer): Buffer {
    const service = decodeHealthCheckRequest(request);
    if (service !== wholeServer) throw new GrpcStatus(GrpcCode.notFound, 'unknown service');
    return servingMessage();
  }

  /** Sends the current state and every change; the only change is the end of the stream. */
  async watch(
    request: Buffer,
    call: { readonly signal: AbortSignal },
    send: (framed: Buffer) => Promise<void>,
  ): Promise<void> {
    const service = decodeHealthCheckRequest(request);
    await send(service === wholeServer ? servingMessage() : unknownMessage());
    if (call.signal.aborted) return;
    await new Promise<void>((resolve) => call.signal.addEventListener('abort', () => resolve(), { once: true }));
  }
}

function servingMessage(): Buffer {
  return encodeFramed(healthpb.HealthCheckResponseSchema, {
    status: healthpb.HealthCheckResponse_ServingStatus.SERVING,
  });
}

function unknownMessage(): Buffer {
  return encodeFramed(healthpb.HealthCheckResponseSchema, {
    status: healthpb.HealthCheckResponse_ServingStatus.SERVICE_UNKNOWN,
  });
}
