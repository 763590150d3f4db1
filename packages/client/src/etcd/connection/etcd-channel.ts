import type * as Grpc from '@grpc/grpc-js';
import { onAbort } from '../../time/on-abort.ts';
import type { ProcessRef } from '../../time/process-ref.ts';
import type { Signal } from '../../time/signal.ts';
import { unreferenced } from './unreferenced-credentials.ts';

/** A range may answer with much; a watch is cut by the server. */
const maxAnswerBytes = 256 * 1024 * 1024;

const channelOptions: Grpc.ChannelOptions = {
  'grpc.max_receive_message_length': maxAnswerBytes,
  // What was sent once is not sent again behind our back.
  'grpc.enable_retries': 0,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // A silent connection is a dead one, though TCP may not say so for minutes. etcd drops who asks more often than
  // every 5 s.
  'grpc.keepalive_time_ms': 5_500,
  'grpc.keepalive_timeout_ms': 2_500,
};

const asIs = (bytes: Buffer): Buffer => bytes;

interface EtcdChannelOptions {
  readonly grpc: typeof Grpc;
  /** host:port */
  readonly address: string;
  readonly credentials: Grpc.ChannelCredentials;
  readonly serverName: string | undefined;
  readonly processRef: ProcessRef;
}

/** One connection to one server. By itself it keeps no process alive; calls do, unless they say otherwise. */
export class EtcdChannel {
  readonly address: string;
  readonly #grpc: typeof Grpc;
  readonly #client: Grpc.Client;
  readonly #processRef: ProcessRef;

  constructor({ grpc, address, credentials, serverName, processRef }: EtcdChannelOptions) {
    this.#grpc = grpc;
    this.#processRef = processRef;
    this.address = address;
    const named = serverName === undefined ? {} : { 'grpc.ssl_target_name_override': serverName };
    this.#client = new grpc.Client(address, unreferenced(credentials), { ...channelOptions, ...named });
  }

  /** True once there is a connection; false when an attempt has failed, or after `timeoutMs`. */
  async isReady(timeoutMs: number): Promise<boolean> {
    const { READY, SHUTDOWN, TRANSIENT_FAILURE } = this.#grpc.connectivityState;
    const channel = this.#client.getChannel();
    const untilMs = performance.now() + timeoutMs;
    for (;;) {
      const state = channel.getConnectivityState(true);
      if (state === READY) return true;
      const leftMs = untilMs - performance.now();
      if (state === TRANSIENT_FAILURE || state === SHUTDOWN || leftMs <= 0) return false;
      await new Promise<void>((resolve) => {
        channel.watchConnectivityState(state, Date.now() + leftMs, () => resolve());
      });
    }
  }

  /** Rejects with a grpc ServiceError. Whether a call that was aborted has been carried out is not known. */
  unary(
    path: string,
    request: Uint8Array,
    metadata: Grpc.Metadata,
    options: { readonly timeoutMs: number; readonly signals: readonly Signal[] },
  ): Promise<Buffer> {
    const sending = new Promise<Buffer>((resolve, reject) => {
      const body = Buffer.from(request.buffer, request.byteOffset, request.byteLength);
      const deadline = Date.now() + Math.max(1, options.timeoutMs);
      const call = this.#client.makeUnaryRequest(path, asIs, asIs, body, metadata, { deadline }, (error, answer) => {
        for (const stop of stops) stop();
        if (error === null) resolve(answer ?? Buffer.alloc(0));
        else reject(error);
      });
      const stops = options.signals.map((signal) => onAbort(signal, () => call.cancel()));
    });
    return this.#processRef.during(() => sending);
  }

  stream(
    path: string,
    metadata: Grpc.Metadata,
    options: { readonly unref: boolean },
  ): Grpc.ClientDuplexStream<Buffer, Buffer> {
    const call = this.#client.makeBidiStreamRequest(path, asIs, asIs, metadata);
    // However it ends, it does so with a status.
    if (!options.unref) call.once('status', this.#processRef.take());
    return call;
  }

  close(): void {
    this.#client.close();
  }
}
