import { etcdserverpb } from '@tenure/protocol';
import type { BidiStream, CallOptions, GrpcClient } from './grpc-client.ts';
import type { CallStatus } from './refusal.ts';

type Stream = BidiStream<
  typeof etcdserverpb.LeaseKeepAliveRequestSchema,
  typeof etcdserverpb.LeaseKeepAliveResponseSchema
>;

/** One LeaseKeepAlive call. */
export class KeepAliveStream {
  readonly #stream: Stream;

  constructor(client: GrpcClient, options: CallOptions = {}) {
    this.#stream = client.bidi(etcdserverpb.Lease.method.leaseKeepAlive, options);
  }

  get ended(): Promise<CallStatus> {
    return this.#stream.ended;
  }

  send(id: bigint): void {
    this.#stream.send({ ID: id });
  }

  sendRaw(request: Uint8Array): void {
    this.#stream.sendRaw(request);
  }

  /** The next reply, about any lease. */
  next(): Promise<etcdserverpb.LeaseKeepAliveResponse> {
    return this.#stream.messages.take('a keep-alive reply', () => true);
  }

  renew(id: bigint): Promise<etcdserverpb.LeaseKeepAliveResponse> {
    this.send(id);
    return this.#stream.messages.take(`the renewal of ${id}`, (reply) => reply.ID === id);
  }

  halfClose(): void {
    this.#stream.halfClose();
  }

  close(): void {
    this.#stream.cancel();
  }
}
