import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { EtcdConnection, EtcdError, type EtcdOptions, type EtcdStream } from 'tenure/etcd';
import { troubleOf } from './engine-error-of.ts';

export type { EtcdTls } from 'tenure/etcd';

export interface EtcdCredentials {
  readonly user: string;
  readonly password: string;
}

export interface EtcdClientOptions extends EtcdOptions {
  /** The timeout of one attempt. A repeatable request has two and a half times as long in all. */
  readonly timeoutMs: number;
  /** Called after each request with whether etcd could be reached, and why not. */
  readonly onOutcome: (failure: EtcdError | undefined) => void;
}

const readTimeoutFactor = 2.5;
const pauseBetweenRoundsMs = 100;
const longestPauseMs = 1000;

/** The connection to the etcd that keeps the log, which reports each outcome. All methods reject with EtcdError. */
export class EtcdLogClient {
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
   * Like `read`, but waits for etcd without a timeout. Resolves with undefined when `signal` aborts; rejects when the
   * client is closed, or etcd refuses permanently.
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

  /** A stream of watches on the current endpoint, which ends by itself when its member loses the cluster. */
  openWatch(): Promise<EtcdStream> {
    const headers = { hasleader: 'true' };
    return this.#observed(() => this.#connection.stream('/etcdserverpb.Watch/Watch', { headers }));
  }

  get isClosed(): boolean {
    return this.#connection.isClosed;
  }

  /** The endpoints, for messages. */
  get addresses(): string {
    return this.#connection.addresses.join(', ');
  }

  /** Ends every request in progress. */
  close(): void {
    this.#connection.close();
  }

  /**
   * Waits until the delay has passed, the client is closed or `signal` aborts. The timer keeps the process alive: a
   * server that reads its snapshot while etcd is down has nothing else that does.
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
      // An etcd that is full has answered, so the endpoint stays in use.
      const isAway = error instanceof EtcdError && isPassing(error) && troubleOf(error) !== 'full';
      if (isAway && !this.isClosed) this.#onOutcome(error);
      throw error;
    }
  }
}

/** Whether the failure may end by itself after a while. */
function isPassing({ etcdCode }: EtcdError): boolean {
  return etcdCode !== 'denied' && etcdCode !== 'invalid' && etcdCode !== 'compacted';
}
