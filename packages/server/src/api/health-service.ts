import { healthpb } from '@tenure/protocol';
import { decodeHealthCheckRequest, encodeFramed } from '@tenure/codec';
import { GrpcCode, GrpcStatus } from '../transport/grpc-status.ts';

/** The only name that is known here, as in etcd: it stands for the server as a whole. */
const wholeServer = '';

/** grpc.health.v1: Check answers SERVING while the server runs; a server that stops answers nothing at all. */
export class HealthService {
  check(request: Buffer): Buffer {
    const service = decodeHealthCheckRequest(request);
    if (service !== wholeServer) throw new GrpcStatus(GrpcCode.notFound, 'unknown service');
    return servingMessage();
  }

  /** Sends the state now and whenever it changes; it changes only by the end of the stream. */
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
