import { GrpcChannel, type GrpcMetadata, type GrpcStream, type GrpcTls } from '@tenure/grpc-client';
import { onAbort } from '../../time/on-abort.ts';
import type { ProcessRef } from '../../time/process-ref.ts';
import type { Signal } from '../../time/signal.ts';

/** A range may answer with much; a watch is cut by the server. */
const maxMessageBytes = 256 * 1024 * 1024;
/** etcd drops a client that asks for a sign of life more often than every 5 s. */
const keepAliveIntervalMs = 5_500;
const keepAliveTimeoutMs = 2_500;

interface EtcdChannelOptions {
  /** host:port */
  readonly address: string;
  readonly tls: GrpcTls | undefined;
  readonly processRef: ProcessRef;
}

/** One connection to one server. By itself it keeps no process alive; calls do, unless they say otherwise. */
export class EtcdChannel {
  readonly #grpc: GrpcChannel;
  readonly #processRef: ProcessRef;

  constructor({ address, tls, processRef }: EtcdChannelOptions) {
    this.#processRef = processRef;
    this.#grpc = new GrpcChannel({ address, tls, maxMessageBytes, keepAliveIntervalMs, keepAliveTimeoutMs });
  }

  get address(): string {
    return this.#grpc.address;
  }

  /** Why there is no connection. */
  get problem(): string {
    return this.#grpc.problem;
  }

  /** True once there is a connection; false when an attempt has failed, or after `timeoutMs`. */
  isReady(timeoutMs: number): Promise<boolean> {
    return this.#grpc.connect(timeoutMs);
  }

  /** Rejects with GrpcCallError. Whether a call that was aborted has been carried out is not known. */
  async unary(
    path: string,
    request: Uint8Array,
    metadata: GrpcMetadata,
    options: { readonly timeoutMs: number; readonly signals: readonly Signal[] },
  ): Promise<Buffer> {
    const call = this.#grpc.unary(path, request, options.timeoutMs, metadata);
    const stops = options.signals.map((signal) => onAbort(signal, () => call.cancel()));
    try {
      return await this.#processRef.during(() => call.reply);
    } finally {
      for (const stop of stops) stop();
    }
  }

  stream(path: string, metadata: GrpcMetadata, options: { readonly unref: boolean }): GrpcStream {
    const call = this.#grpc.stream(path, metadata);
    if (!options.unref) call.once('close', this.#processRef.take());
    return call;
  }

  /** What follows goes over another connection: see GrpcChannel.reconnect. */
  reconnect(): void {
    this.#grpc.reconnect();
  }

  close(): void {
    this.#grpc.close();
  }
}
