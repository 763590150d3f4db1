import * as grpc from '@grpc/grpc-js';

/** The answers that the engine asks for are cut to a few MiB; a watch answers in fragments of 2 MiB. */
const maxAnswerBytes = 32 * 1024 * 1024;

const channelOptions: grpc.ChannelOptions = {
  'grpc.max_receive_message_length': maxAnswerBytes,
  // What was sent once is not sent again behind our back.
  'grpc.enable_retries': 0,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // A silent connection is a dead one. etcd drops clients that ask more often than every 5 s.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 3000,
  // Whole parts of entries and snapshots pass in one go.
  'grpc-node.flow_control_window': 2 * 1024 * 1024,
};

const asIs = (bytes: Buffer): Buffer => bytes;

/** One connection to one member of etcd, and the next one when that is dead. */
export class EtcdEndpoint {
  readonly address: string;
  readonly #connect: () => grpc.Client;
  #client: grpc.Client;

  /** `address` is host:port. */
  constructor(address: string, credentials: grpc.ChannelCredentials, serverName: string | undefined) {
    this.address = address;
    const named = serverName === undefined ? {} : { 'grpc.ssl_target_name_override': serverName };
    this.#connect = () => new grpc.Client(address, credentials, { ...channelOptions, ...named });
    this.#client = this.#connect();
  }

  /**
   * What is asked from now on goes over a new connection, while what is out keeps the old one. A connection that
   * answers nothing may be dead without anybody's word, and its pings tell so only after many seconds.
   */
  reconnect(): void {
    const silent = this.#client;
    this.#client = this.#connect();
    silent.close();
  }

  /** True once there is a connection; false when an attempt has failed, or at the deadline (of `performance.now`). */
  async isReady(deadlineMs: number): Promise<boolean> {
    const channel = this.#client.getChannel();
    for (;;) {
      const state = channel.getConnectivityState(true);
      if (state === grpc.connectivityState.READY) return true;
      if (state === grpc.connectivityState.TRANSIENT_FAILURE || state === grpc.connectivityState.SHUTDOWN) return false;
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) return false;
      await new Promise<void>((resolve) => {
        channel.watchConnectivityState(state, Date.now() + leftMs, () => resolve());
      });
    }
  }

  /** Rejects with a grpc.ServiceError. An abort ends the call; whether it was carried out is then not known. */
  unary(
    path: string,
    request: Uint8Array,
    metadata: grpc.Metadata,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const deadline = Date.now() + timeoutMs;
      const body = Buffer.from(request.buffer, request.byteOffset, request.byteLength);
      const cancel = (): void => call.cancel();
      const call = this.#client.makeUnaryRequest(path, asIs, asIs, body, metadata, { deadline }, (error, answer) => {
        signal.removeEventListener('abort', cancel);
        if (error === null) resolve(answer ?? Buffer.alloc(0));
        else reject(error);
      });
      signal.addEventListener('abort', cancel);
      if (signal.aborted) cancel();
    });
  }

  bidi(path: string, metadata: grpc.Metadata): grpc.ClientDuplexStream<Buffer, Buffer> {
    return this.#client.makeBidiStreamRequest(path, asIs, asIs, metadata);
  }

  close(): void {
    this.#client.close();
  }
}
