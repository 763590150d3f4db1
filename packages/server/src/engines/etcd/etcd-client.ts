import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import { etcdserverpb } from '@tenure/protocol';
import { EtcdEndpoint } from './etcd-endpoint.ts';
import { EtcdFailure, failureOf, troubleOf } from './etcd-failure.ts';

/** The contents of PEM files. Without `ca`, the authorities that Node trusts. */
export interface EtcdTls {
  readonly ca?: Buffer;
  /** The certificate of this client, with `key`. */
  readonly cert?: Buffer;
  readonly key?: Buffer;
  /** The name in etcd's certificate, when it is not the endpoint's. */
  readonly serverName?: string;
}

export interface EtcdCredentials {
  readonly user: string;
  readonly password: string;
}

export interface EtcdClientOptions {
  /** host:port of each member. */
  readonly endpoints: readonly string[];
  readonly credentials?: EtcdCredentials | undefined;
  readonly tls?: EtcdTls | undefined;
  /** How long one attempt may take to be answered. What may be done again has two and a half times as long in all. */
  readonly requestTimeoutMs: number;
  /** Told after each request whether etcd could be reached, and if not, why. */
  readonly onOutcome: (failure: EtcdFailure | undefined) => void;
}

/** A stream on one endpoint. */
export interface EtcdStream {
  readonly call: grpc.ClientDuplexStream<Buffer, Buffer>;
  /** Says that it ended without being asked to: what follows goes to another endpoint, with a new token. */
  readonly abandon: () => void;
}

const connectTimeoutMs = 2000;
const readTimeoutFactor = 2.5;
const pauseBetweenRoundsMs = 100;
const longestPauseMs = 1000;

/**
 * A client of etcd that never sends a write twice. It stays with one endpoint until a request fails there, and then
 * moves to the next one.
 */
export class EtcdClient {
  readonly usesTls: boolean;
  readonly #endpoints: readonly EtcdEndpoint[];
  readonly #credentials: EtcdCredentials | undefined;
  readonly #requestTimeoutMs: number;
  readonly #onOutcome: (failure: EtcdFailure | undefined) => void;
  readonly #closed = new AbortController();
  #current = 0;
  #token: Promise<string | undefined> | undefined;

  constructor(options: EtcdClientOptions) {
    this.usesTls = options.tls !== undefined;
    const { ca, cert, key, serverName } = options.tls ?? {};
    const credentials =
      options.tls === undefined
        ? grpc.credentials.createInsecure()
        : grpc.credentials.createSsl(ca ?? null, key ?? null, cert ?? null);
    this.#endpoints = options.endpoints.map((address) => new EtcdEndpoint(address, credentials, serverName));
    this.#credentials = options.credentials;
    this.#requestTimeoutMs = options.requestTimeoutMs;
    this.#onOutcome = options.onOutcome;
  }

  /** Sends the request at most once, unless etcd says that it did nothing with it. Rejects with EtcdFailure. */
  async write<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>> {
    const deadlineMs = performance.now() + this.#requestTimeoutMs;
    return this.#observed(() => this.#send(method, request, deadlineMs));
  }

  /**
   * For what may be done any number of times: goes from endpoint to endpoint until the time is up. Rejects with
   * EtcdFailure.
   */
  async read<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    timeoutMs = this.#requestTimeoutMs * readTimeoutFactor,
  ): Promise<MessageShape<O>> {
    const deadlineMs = performance.now() + timeoutMs;
    return this.#observed(async () => {
      for (;;) {
        try {
          return await this.#send(method, request, Math.min(deadlineMs, performance.now() + this.#requestTimeoutMs));
        } catch (error) {
          const mayHelp = error instanceof EtcdFailure && isPassing(error);
          if (!mayHelp || performance.now() + pauseBetweenRoundsMs >= deadlineMs || this.isClosed) throw error;
          await this.pause(pauseBetweenRoundsMs);
        }
      }
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
        const mayHelp = error instanceof EtcdFailure && isPassing(error);
        if (!mayHelp || this.isClosed) throw error;
        await this.pause(Math.min(longestPauseMs, pauseBetweenRoundsMs * 2 ** Math.min(failures, 10)), signal);
      }
    }
    return undefined;
  }

  /** A stream of watches on the endpoint that answers now, which ends by itself when its member loses the cluster. */
  async openWatch(): Promise<EtcdStream> {
    return this.#observed(async () => {
      const deadlineMs = performance.now() + this.#requestTimeoutMs;
      const endpoint = await this.#ready(deadlineMs);
      const metadata = await this.#metadata(endpoint, deadlineMs);
      metadata.set('hasleader', 'true');
      const abandon = (): void => {
        this.#token = undefined;
        this.#rotate(endpoint);
      };
      return { call: endpoint.bidi('/etcdserverpb.Watch/Watch', metadata), abandon };
    });
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** The same endpoints, for messages. */
  get addresses(): string {
    return this.#endpoints.map(({ address }) => address).join(', ');
  }

  /** Ends every request that is out. */
  close(): void {
    this.#closed.abort();
    for (const endpoint of this.#endpoints) endpoint.close();
  }

  /** Waits, but no longer than until the client is closed or `signal` aborts. */
  pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (this.isClosed || signal?.aborted === true) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        this.#closed.signal.removeEventListener('abort', done);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#closed.signal.addEventListener('abort', done);
      signal?.addEventListener('abort', done);
    });
  }

  async #observed<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      const value = await work();
      this.#onOutcome(undefined);
      return value;
    } catch (error) {
      // An etcd that is full has answered, and is asked on.
      const isAway = error instanceof EtcdFailure && isPassing(error) && troubleOf(error) !== 'full';
      if (isAway && !this.isClosed) this.#onOutcome(error);
      throw error;
    }
  }

  async #send<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    deadlineMs: number,
  ): Promise<MessageShape<O>> {
    const bytes = toBinary(method.input, create(method.input, request));
    const path = `/${method.parent.typeName}/${method.name}`;
    for (let attempt = 1; ; attempt++) {
      const endpoint = await this.#ready(deadlineMs);
      const metadata = await this.#metadata(endpoint, deadlineMs);
      try {
        const leftMs = Math.max(1, deadlineMs - performance.now());
        const answer = await endpoint.unary(path, bytes, metadata, leftMs, this.#closed.signal);
        return fromBinary(method.output, answer, { readUnknownFields: false });
      } catch (error) {
        const failure = failureOf(endpoint.address, error);
        if (isUnanswered(failure)) endpoint.reconnect();
        if (failure.kind === 'token') this.#token = undefined;
        // Both kinds say that nothing was done.
        if (attempt === 1 && (failure.kind === 'token' || failure.kind === 'unreachable')) continue;
        if (failure.kind === 'ambiguous' || failure.kind === 'unreachable') this.#rotate(endpoint);
        throw failure;
      }
    }
  }

  /** An endpoint with a connection. */
  async #ready(deadlineMs: number): Promise<EtcdEndpoint> {
    for (;;) {
      for (const _ of this.#endpoints) {
        const endpoint = this.#endpoints[this.#current]!;
        if (await endpoint.isReady(Math.min(deadlineMs, performance.now() + connectTimeoutMs))) return endpoint;
        this.#rotate(endpoint);
      }
      if (this.isClosed) throw new EtcdFailure('unreachable', this.addresses, 'the engine is closed');
      if (performance.now() + pauseBetweenRoundsMs >= deadlineMs) throw await this.#whyUnreachable();
      await this.pause(pauseBetweenRoundsMs);
    }
  }

  /** A call without a connection ends at once with the reason why there is none. */
  async #whyUnreachable(): Promise<EtcdFailure> {
    const { input } = etcdserverpb.Maintenance.method.status;
    const bytes = toBinary(input, create(input));
    const words = this.#endpoints.map(async (endpoint) => {
      try {
        const path = '/etcdserverpb.Maintenance/Status';
        await endpoint.unary(path, bytes, new grpc.Metadata(), pauseBetweenRoundsMs, this.#closed.signal);
        return `${endpoint.address}: it answers again`;
      } catch (error) {
        const failure = failureOf(endpoint.address, error);
        if (isUnanswered(failure)) return `${endpoint.address}: it does not answer`;
        return `${endpoint.address}: ${lastError(failure.details)}`;
      }
    });
    return new EtcdFailure('unreachable', 'no connection to etcd', (await Promise.all(words)).join('; '));
  }

  async #metadata(endpoint: EtcdEndpoint, deadlineMs: number): Promise<grpc.Metadata> {
    const metadata = new grpc.Metadata();
    if (this.#credentials === undefined) return metadata;
    const pending = (this.#token ??= this.#authenticate(endpoint, this.#credentials, deadlineMs));
    try {
      const token = await pending;
      if (token !== undefined) metadata.set('token', token);
      return metadata;
    } catch (error) {
      if (this.#token === pending) this.#token = undefined;
      this.#rotate(endpoint);
      throw error;
    }
  }

  /** The token for a user, or undefined if etcd asks for none. Nothing of the request itself has been sent yet. */
  async #authenticate(
    endpoint: EtcdEndpoint,
    { user, password }: EtcdCredentials,
    deadlineMs: number,
  ): Promise<string | undefined> {
    const { input, output } = etcdserverpb.Auth.method.authenticate;
    const bytes = toBinary(input, create(input, { name: user, password }));
    const path = '/etcdserverpb.Auth/Authenticate';
    try {
      const leftMs = Math.max(1, deadlineMs - performance.now());
      const answer = await endpoint.unary(path, bytes, new grpc.Metadata(), leftMs, this.#closed.signal);
      return fromBinary(output, answer).token;
    } catch (error) {
      const failure = failureOf(endpoint.address, error);
      if (failure.details === 'etcdserver: authentication is not enabled') return undefined;
      const kind = failure.kind === 'ambiguous' ? 'unreachable' : failure.kind;
      throw new EtcdFailure(kind, endpoint.address, failure.details, error);
    }
  }

  #rotate(from?: EtcdEndpoint): void {
    if (from !== undefined && this.#endpoints[this.#current] !== from) return;
    this.#current = (this.#current + 1) % this.#endpoints.length;
  }
}

/** grpc-js' words for a call whose time is up. */
function isUnanswered(failure: EtcdFailure): boolean {
  return failure.details.startsWith('Deadline exceeded');
}

/** The reason alone, on one line: grpc-js adds its time and more around it, and what TLS says ends a line. */
function lastError(details: string): string {
  const reason = /Last error: (?:Error: )?(.*?)\s*(?:\([\dTZ:.-]+\))?\. Resolution note/s.exec(details)?.[1] ?? details;
  return reason.replaceAll(/\s+/g, ' ');
}

/** Whether it may be over after a while without anybody's doing. */
function isPassing(failure: EtcdFailure): boolean {
  return failure.kind !== 'denied' && failure.kind !== 'invalid' && failure.kind !== 'compacted';
}
