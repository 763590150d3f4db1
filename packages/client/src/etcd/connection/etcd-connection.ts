import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { GrpcCallError, GrpcCode, type GrpcMetadata } from '@tenure/grpc-client';
import { etcdserverpb } from '@tenure/protocol';
import { UsageError } from '../../errors/usage-error.ts';
import { EtcdError } from './etcd-error.ts';
import { EtcdChannel, openGrpcChannel } from './etcd-channel.ts';
import type { OpenChannel, RpcStream } from './etcd-channel.ts';
import { etcdErrorOf, isStaleToken } from './etcd-error-of.ts';
import type { EtcdOptions } from './etcd-options.ts';
import type { Clock } from '../../time/clock.ts';
import { ProcessRef } from '../../time/process-ref.ts';
import type { Signal } from '../../time/signal.ts';
import { sleep } from '../../time/sleep.ts';
import { systemClock } from '../../time/system-clock.ts';

/** A stream on one of the servers. */
export interface EtcdStream {
  readonly call: RpcStream;
  readonly endpoint: string;
  /** Reports an end that the client did not cause: later calls go to another server, with a new token. */
  readonly abandon: () => void;
}

export interface ReadOptions {
  readonly signal?: Signal | undefined;
  /** The limit of the whole call; by default that of the client. */
  readonly timeoutMs?: number;
  /** The limit of one attempt, before another server is tried. */
  readonly attemptTimeoutMs?: number;
}

export interface StreamOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly unref?: boolean;
}

interface Credentials {
  readonly metadata: GrpcMetadata;
  /** The login that they are from. */
  readonly token: Promise<string | undefined> | undefined;
}

const defaultTimeoutMs = 5000;
const connectTimeoutMs = 2000;
const pauseMs = 100;
/** How long a call waits for a login that follows a refused one. */
const deniedPauseMs = 100;
const maxEndpoints = 32;
const defaultPort = 2379;
const maxPort = 65_535;
const never = new AbortController().signal;

/**
 * A connection to a cluster. It uses one server until a call fails there, and then moves to the next. A write is sent
 * once: a write that may have been executed is never sent again.
 */
export class EtcdConnection {
  /**
   * Each call keeps the process alive until it has ended, also while it waits for a server.
   * @internal
   */
  readonly processRef: ProcessRef;
  /** The clock of this connection and of everything built on it. */
  readonly clock: Clock;
  readonly #options: EtcdOptions;
  readonly #channels: readonly EtcdChannel[];
  readonly #timeoutMs: number;
  readonly #closed = new AbortController();
  #current = 0;
  #token: Promise<string | undefined> | undefined;
  /** The error of the last login, if the server refused the user or the password. */
  #denied: EtcdError | undefined;

  constructor(options: EtcdOptions, clock: Clock = systemClock, open: OpenChannel = openGrpcChannel) {
    this.clock = clock;
    // Without the clock of the process, none of its timers may be used either.
    this.processRef = new ProcessRef({ unref: clock !== systemClock });
    const given = typeof options.endpoints === 'string' ? options.endpoints.split(',') : options.endpoints;
    const parsed = given.map((text) => parseEndpoint(text.trim()));
    if (parsed.length === 0 || parsed.length > maxEndpoints) {
      throw new UsageError(`endpoints must be 1 to ${maxEndpoints} addresses such as 127.0.0.1:2379`);
    }
    this.#options = options;
    const tls = options.tls ?? (parsed.some(({ isSecure }) => isSecure) ? {} : undefined);
    const { processRef } = this;
    this.#channels = parsed.map(({ address }) => new EtcdChannel({ address, tls, processRef, open }));
    this.#timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  get addresses(): readonly string[] {
    return this.#channels.map(({ address }) => address);
  }

  /** Sends the request at most once, unless the server reports that it did not execute it. Rejects with EtcdError. */
  write<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    signal: Signal = never,
  ): Promise<MessageShape<O>> {
    return this.processRef.during(() => this.#send(method, request, this.#nowMs() + this.#timeoutMs, signal));
  }

  /** For idempotent requests: tries one server after another until the time is up. */
  read<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: ReadOptions = {},
  ): Promise<MessageShape<O>> {
    return this.processRef.during(() => this.#read(method, request, options));
  }

  async #read<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: ReadOptions,
  ): Promise<MessageShape<O>> {
    const { signal = never, timeoutMs = this.#timeoutMs } = options;
    const untilMs = this.#nowMs() + timeoutMs;
    // One server that does not answer must not use up the whole time.
    const attemptMs = options.attemptTimeoutMs ?? (this.#channels.length > 1 ? timeoutMs / 2 : timeoutMs);
    for (;;) {
      try {
        return await this.#send(method, request, Math.min(untilMs, this.#nowMs() + attemptMs), signal);
      } catch (error) {
        if (!isPassing(error) || this.#nowMs() + pauseMs >= untilMs || this.isClosed) throw error;
        if (this.#options.failFast === true && error.etcdCode === 'unreachable') throw error;
        await this.pause(pauseMs, signal);
        signal.throwIfAborted();
      }
    }
  }

  /** One call to each server, for requests whose answer differs between servers. */
  async readAt<I extends DescMessage, O extends DescMessage>(
    at: number,
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>> {
    return this.processRef.during(async () => {
      const channel = this.#channels[at]!;
      if (this.isClosed) throw this.#closedError();
      const bytes = toBinary(method.input, create(method.input, request));
      const timing = { timeoutMs: this.#timeoutMs, signals: [this.#closed.signal] };
      for (let attempt = 1; ; attempt++) {
        if (!(await channel.isReady(Math.min(this.#timeoutMs, connectTimeoutMs)))) {
          throw new EtcdError('unreachable', channel.address, channel.problem);
        }
        const { metadata, token } = await this.#credentials(channel, this.#timeoutMs);
        try {
          return fromBinary(method.output, await channel.unary(pathOf(method), bytes, metadata, timing));
        } catch (error) {
          const failure = etcdErrorOf(channel.address, error);
          const isStale = this.isStale(failure);
          if (isStale) this.#forget(token);
          if (attempt > 1 || !isStale) throw failure;
        }
      }
    });
  }

  /**
   * Opens a stream to a server that is reachable now. Rejects with EtcdError when there is none. It keeps the process
   * alive until it ends, unless `unref` is given.
   */
  stream(path: string, options: StreamOptions = {}): Promise<EtcdStream> {
    return options.unref === true
      ? this.#stream(path, options)
      : this.processRef.during(() => this.#stream(path, options));
  }

  async #stream(path: string, { headers = {}, unref = false }: StreamOptions): Promise<EtcdStream> {
    const untilMs = this.#nowMs() + this.#timeoutMs;
    const channel = await this.#ready(untilMs, never);
    const { metadata, token } = await this.#credentials(channel, untilMs - this.#nowMs());
    const abandon = (): void => {
      this.#forget(token);
      this.#leaveServer(channel);
    };
    try {
      const call = channel.stream(path, { ...metadata, ...headers }, { unref });
      return { call, endpoint: channel.address, abandon };
    } catch (error) {
      throw etcdErrorOf(channel.address, error);
    }
  }

  /**
   * Whether a server refused only the token, so that a retry with a new one may succeed. A user has none from before
   * authentication was enabled. Nothing was executed.
   * @internal
   */
  isStale(failure: EtcdError): boolean {
    const isMissing = this.#options.user !== undefined && failure.details === 'etcdserver: user name is empty';
    return isMissing || isStaleToken(failure);
  }

  /** Waits, at most until the client is closed or `signal` aborts. Does not keep the process alive. */
  pause(ms: number, signal: Signal = never): Promise<void> {
    return sleep(this.clock, ms, this.#closed.signal, signal);
  }

  /** Ends every call in progress. */
  close(): void {
    if (this.isClosed) return;
    this.#closed.abort();
    for (const channel of this.#channels) channel.close();
  }

  async #send<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    untilMs: number,
    signal: Signal,
  ): Promise<MessageShape<O>> {
    const bytes = toBinary(method.input, create(method.input, request));
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted();
      const channel = await this.#ready(untilMs, signal);
      const { metadata, token } = await this.#credentials(channel, untilMs - this.#nowMs());
      try {
        const timing = { timeoutMs: untilMs - this.#nowMs(), signals: [this.#closed.signal, signal] };
        const answer = await channel.unary(pathOf(method), bytes, metadata, timing);
        return fromBinary(method.output, answer, { readUnknownFields: false });
      } catch (error) {
        signal.throwIfAborted();
        const failure = this.isClosed ? this.#closedError() : etcdErrorOf(channel.address, error);
        const isStale = this.isStale(failure);
        if (isStale) this.#forget(token);
        if (isUnanswered(error)) channel.reconnect();
        if (failure.etcdCode === 'ambiguous' || failure.etcdCode === 'unreachable') this.#leaveServer(channel);
        // Both errors mean that nothing was executed.
        if (attempt === 1 && (isStale || failure.etcdCode === 'unreachable')) continue;
        throw failure;
      }
    }
  }

  /** A server with a connection. */
  async #ready(untilMs: number, signal: Signal): Promise<EtcdChannel> {
    for (;;) {
      if (this.isClosed) throw this.#closedError();
      for (const _ of this.#channels) {
        const channel = this.#channels[this.#current]!;
        if (await channel.isReady(Math.min(untilMs - this.#nowMs(), connectTimeoutMs))) return channel;
        signal.throwIfAborted();
        this.#leaveServer(channel);
      }
      if (this.isClosed) throw this.#closedError();
      const isLast = this.#options.failFast === true || this.#nowMs() + pauseMs >= untilMs;
      if (isLast) throw this.#whyUnreachable(this.#channels);
      await this.pause(pauseMs, signal);
      signal.throwIfAborted();
    }
  }

  #nowMs(): number {
    return this.clock.now().monotonicMs;
  }

  #whyUnreachable(channels: readonly EtcdChannel[]): EtcdError {
    const words = channels.map(({ address, problem }) => `${address}: ${problem}`);
    return new EtcdError('unreachable', 'no connection', words.join('; '));
  }

  async #credentials(channel: EtcdChannel, timeoutMs: number): Promise<Credentials> {
    const { user } = this.#options;
    if (user === undefined) return { metadata: {}, token: undefined };
    const pending = this.#token ?? this.#login(channel, user, timeoutMs);
    const denied = this.#denied;
    const token = await (denied === undefined ? pending : Promise.race([pending, this.#afterDenial(denied)]));
    return { metadata: token === undefined ? {} : { token }, token: pending };
  }

  /** Of the calls that had a token which has ended, the first one leads to a login, and the others use its token. */
  #forget(token: Credentials['token']): void {
    if (this.#token === token) this.#token = undefined;
  }

  #login(channel: EtcdChannel, user: string, timeoutMs: number): Promise<string | undefined> {
    const pending = this.#authenticate(channel, user, timeoutMs);
    this.#token = pending;
    pending.then(
      () => (this.#denied = undefined),
      (error: unknown) => {
        this.#forget(pending);
        if (error instanceof EtcdError && error.etcdCode === 'denied') this.#denied = error;
        this.#leaveServer(channel);
      },
    );
    return pending;
  }

  /** A server answers a login late that follows failed ones: a caller gets the reason rather than no answer. */
  async #afterDenial(denied: EtcdError): Promise<never> {
    await this.pause(deniedPauseMs);
    throw denied;
  }

  /** The token of the user, or undefined if the server requires none. The call itself has not been sent yet. */
  async #authenticate(channel: EtcdChannel, user: string, timeoutMs: number): Promise<string | undefined> {
    const method = etcdserverpb.Auth.method.authenticate;
    const request = create(method.input, { name: user, password: this.#options.password ?? '' });
    const timing = { timeoutMs, signals: [this.#closed.signal] };
    try {
      const bytes = toBinary(method.input, request);
      const answer = await channel.unary(pathOf(method), bytes, {}, timing);
      return fromBinary(method.output, answer).token;
    } catch (error) {
      const failure = etcdErrorOf(channel.address, error);
      if (failure.details === 'etcdserver: authentication is not enabled') return undefined;
      const code = failure.etcdCode === 'ambiguous' ? 'unreachable' : failure.etcdCode;
      throw new EtcdError(code, channel.address, failure.details, { cause: error });
    }
  }

  #leaveServer(channel: EtcdChannel): void {
    if (this.#channels[this.#current] !== channel) return;
    this.#current = (this.#current + 1) % this.#channels.length;
  }

  #closedError(): EtcdError {
    return new EtcdError('closed', 'etcd', 'the client has been closed');
  }
}

/** A connection without answers may be dead without an error. */
function isUnanswered(error: unknown): boolean {
  return error instanceof GrpcCallError && error.code === GrpcCode.deadlineExceeded;
}

/** Whether the failure may be temporary. */
function isPassing(error: unknown): error is EtcdError {
  return error instanceof EtcdError && ['unreachable', 'ambiguous', 'refused'].includes(error.etcdCode);
}

function pathOf(method: { readonly parent: { readonly typeName: string }; readonly name: string }): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function parseEndpoint(text: string): { readonly address: string; readonly isSecure: boolean } {
  const match = /^(?:(https?):\/\/)?(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?\/?$/.exec(text);
  const port = Number(match?.[3] ?? defaultPort);
  if (match === null || port < 1 || port > maxPort) {
    throw new UsageError(`the endpoint ${JSON.stringify(text)} must look like 127.0.0.1:2379`);
  }
  return { address: `${match[2]}:${port}`, isSecure: match[1] === 'https' };
}
