import { GrpcChannel } from '@tenure/grpc-client';
import type { GrpcChannelOptions, GrpcMetadata, GrpcTls, UnaryCall } from '@tenure/grpc-client';
import { onAbort } from '../../time/on-abort.ts';
import type { ProcessRef } from '../../time/process-ref.ts';
import type { Signal } from '../../time/signal.ts';

/** The answer to a range may be large. The server splits the answers of a watch. */
const maxMessageBytes = 256 * 1024 * 1024;
/** etcd disconnects a client that sends keepalive pings more often than every 5 s. */
const keepAliveIntervalMs = 5_500;
const keepAliveTimeoutMs = 2_500;

/** A stream of whole messages: what the client uses of a GrpcStream. */
export interface RpcStream extends AsyncIterable<Buffer> {
  write(message: Buffer): unknown;
  /** This side has no more messages. */
  end(): unknown;
  cancel(): void;
  on(event: 'data', listener: (message: Buffer) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end' | 'close', listener: () => void): unknown;
  once(event: 'close', listener: () => void): unknown;
}

/** What the client uses of a GrpcChannel. */
export interface RpcChannel {
  readonly address: string;
  readonly problem: string;
  connect(timeoutMs: number): Promise<boolean>;
  unary(path: string, request: Uint8Array, timeoutMs: number, metadata: GrpcMetadata): UnaryCall;
  stream(path: string, metadata: GrpcMetadata): RpcStream;
  reconnect(): void;
  close(): void;
}

/** Opens the channel to one server: by default a GrpcChannel. */
export type OpenChannel = (options: GrpcChannelOptions) => RpcChannel;

export const openGrpcChannel: OpenChannel = (options) => new GrpcChannel(options);

interface EtcdChannelOptions {
  /** host:port */
  readonly address: string;
  readonly tls: GrpcTls | undefined;
  readonly processRef: ProcessRef;
  readonly open: OpenChannel;
}

/**
 * One connection to one server. An idle connection does not keep the process alive; calls do, unless they are unref'd.
 */
export class EtcdChannel {
  readonly #grpc: RpcChannel;
  readonly #processRef: ProcessRef;

  constructor({ address, tls, processRef, open }: EtcdChannelOptions) {
    this.#processRef = processRef;
    this.#grpc = open({ address, tls, maxMessageBytes, keepAliveIntervalMs, keepAliveTimeoutMs });
  }

  get address(): string {
    return this.#grpc.address;
  }

  /** The reason why there is no connection. */
  get problem(): string {
    return this.#grpc.problem;
  }

  /** True once there is a connection; false when an attempt has failed, or after `timeoutMs`. */
  isReady(timeoutMs: number): Promise<boolean> {
    return this.#grpc.connect(timeoutMs);
  }

  /** Rejects with GrpcCallError. An aborted call may have been executed. */
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

  stream(path: string, metadata: GrpcMetadata, options: { readonly unref: boolean }): RpcStream {
    const call = this.#grpc.stream(path, metadata);
    if (!options.unref) call.once('close', this.#processRef.take());
    return call;
  }

  /** Later calls use another connection: see GrpcChannel.reconnect. */
  reconnect(): void {
    this.#grpc.reconnect();
  }

  close(): void {
    this.#grpc.close();
  }
}
