import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { EtcdConnection, EtcdError, type EtcdOptions, type EtcdStream } from 'tenure/etcd';
import { troubleOf } from './engine-error-of.ts';

export type { EtcdTls } from 'tenure/etcd';

export interface EtcdCredentials {
  readonly user: string;
  readonly password: string;
}

export interface EtcdClientOptions extends EtcdOptions {
  /** How long one attempt may take to be answered. What may be done again has two and a half times as long in all. */
  readonly timeoutMs: number;
  /** Told after each request whether etcd could be reached, and why not. */
  readonly onOutcome: (failure: EtcdError | undefined) => void;
}

const readTimeoutFactor = 2.5;
const pauseBetweenRoundsMs = 100;
const longestPauseMs = 1000;

/** The etcd that keeps the log: the library's connection, and word of each outcome. All reject with EtcdError. */
export class EtcdClient {
  readonly usesTls: boolean;
  readonly #connection: EtcdConnection;
  readonly #timeoutMs: number;
  readonly #onOutcome: (failure: EtcdError | undefined) => void;

  constructor(options: EtcdClientOptions) {
    this.usesTls = options.tls !== undefined;
    this.#connection = new EtcdConnection(options);
    this.#timeoutMs = options.timeoutMs;
    this.#onOutcome = options.onOutcome;
  }

  /** See EtcdConnection.write. */
  write<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>> {
    return this.#observed(() => this.#connection.write(method, request));
  }

  /** See EtcdConnection.read. */
  read<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    timeoutMs = this.#timeoutMs * readTimeoutFactor,
  ): Promise<MessageShape<O>> {
    return this.#observed(() => {
      return this.#connection.read(method, request, { timeoutMs, attemptTimeoutMs: this.#timeoutMs });
    });
  }

  /**
   * As `read`, and waits for etcd for as long as it takes. Resolves with undefined when `signal` aborts; rejects when
   * the client is closed, or etcd refuses for good.
   */
  async readPatiently<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
  ): Promise<MessageShape<O> | undefined> {
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        return await this.read(method, request);
      } catch (error) {
        const mayHelp = error instanceof EtcdError && isPassing(error);
        if (!mayHelp || this.isClosed) throw error;
        await this.pause(Math.min(longestPauseMs, pauseBetweenRoundsMs * 2 ** Math.min(failures, 10)), signal);
      }
    }
    return undefined;
  }

  /** A stream of watches on the endpoint that answers now, which ends by itself when its member loses the cluster. */
  openWatch(): Promise<EtcdStream> {
    const headers = { hasleader: 'true' };
    return this.#observed(() => this.#connection.stream('/etcdserverpb.Watch/Watch', { headers }));
  }

  get isClosed(): boolean {
    return this.#connection.isClosed;
  }

  /** The same endpoints, for messages. */
  get addresses(): string {
    return this.#connection.addresses.join(', ');
  }

  /** Ends every request that is out. */
  close(): void {
    this.#connection.close();
  }

  /**
   * Waits, but no longer than until the client is closed or `signal` aborts. Keeps the process alive: a server that
   * reads its snapshot while etcd is away has nothing else that does.
   */
  pause(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#connection.processRef.during(() => this.#connection.pause(ms, signal));
  }

  async #observed<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      const value = await work();
      this.#onOutcome(undefined);
      return value;
    } catch (error) {
      // An etcd that is full has answered, and is asked on.
      const isAway = error instanceof EtcdError && isPassing(error) && troubleOf(error) !== 'full';
      if (isAway && !this.isClosed) this.#onOutcome(error);
      throw error;
    }
  }
}

/** Whether it may be over after a while without anybody's doing. */
function isPassing({ etcdCode }: EtcdError): boolean {
  return etcdCode !== 'denied' && etcdCode !== 'invalid' && etcdCode !== 'compacted';
}
