import type {
  DescMessage,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import type { Clock } from '../../time/clock.ts';
import type { Signal } from '../../time/signal.ts';
import { systemClock } from '../../time/system-clock.ts';
import { openGrpcChannel } from '../connection/etcd-channel.ts';
import type { OpenChannel } from '../connection/etcd-channel.ts';
import { EtcdConnection } from '../connection/etcd-connection.ts';
import type { EtcdOptions } from '../connection/etcd-options.ts';
import type { KeyRange } from './key-range.ts';
import { KvClient } from './kv-client.ts';
import { LeaseClient } from './lease-client.ts';
import { MaintenanceClient } from './maintenance-client.ts';
import { openStream } from './message-stream.ts';
import type { MessageStream } from './message-stream.ts';
import { watchRange } from './watcher.ts';
import type { WatchBatch, WatchOptions } from './watcher.ts';

/**
 * A client of etcd v3: of etcd itself and of Tenure's server. Nothing is connected before the first call. It
 * reconnects by itself and moves to another endpoint when one fails; no write that may have been done is sent again.
 */
export class EtcdClient implements AsyncDisposable {
  readonly kv: KvClient;
  readonly lease: LeaseClient;
  readonly maintenance: MaintenanceClient;
  readonly #connection: EtcdConnection;

  /** Throws UsageError for an invalid endpoint. */
  constructor(options: EtcdOptions, clock: Clock = systemClock, open: OpenChannel = openGrpcChannel) {
    this.#connection = new EtcdConnection(options, clock, open);
    this.kv = new KvClient(this.#connection);
    this.lease = new LeaseClient(this.#connection);
    this.maintenance = new MaintenanceClient(this.#connection);
  }

  /**
   * The changes of a range, each once and in order, across broken connections; see `WatchBatch`. Ends when `signal`
   * aborts or the loop over it is left; throws EtcdError when the history it needs is gone.
   */
  watch(range: KeyRange, options: WatchOptions = {}): AsyncGenerator<WatchBatch, void, undefined> {
    return watchRange(this.#connection, range, options);
  }

  /**
   * Any unary call of etcd's API, as `@tenure/protocol` describes it: it resolves with the whole message of the answer,
   * for fields that the typed calls leave out. Sent once, like a write. Rejects with EtcdError.
   */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: { readonly signal?: Signal } = {},
  ): Promise<MessageShape<O>> {
    return this.#connection.write(method, request, options.signal);
  }

  /** The same for a stream, on one server and without a time limit. It is not reopened when it breaks. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O> | DescMethodBiDiStreaming<I, O>,
  ): Promise<MessageStream<I, O>> {
    return openStream(this.#connection, method);
  }

  /** Ends every call in progress. Idempotent. */
  close(): void {
    this.lease.close();
    this.#connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
