import { X509Certificate } from 'node:crypto';
import { connect, type ClientHttp2Session, type ClientHttp2Stream, type OutgoingHttpHeaders } from 'node:http2';
import { checkServerIdentity } from 'node:tls';
import { AnswerTimer } from './answer-timer.ts';
import { GrpcCallError, GrpcCode } from './grpc-call-error.ts';
import { GrpcStream } from './grpc-stream.ts';

/** The contents of PEM files. Without `ca`, the CAs that Node trusts. */
export interface GrpcTls {
  readonly ca?: Uint8Array | undefined;
  /** The certificate of this client, with `key`. */
  readonly cert?: Uint8Array | undefined;
  readonly key?: Uint8Array | undefined;
  /** The name in the server's certificate, when it differs from the address. */
  readonly serverName?: string | undefined;
  /** Certificates that the authorities have revoked, as PEM. */
  readonly crl?: readonly string[] | undefined;
  /** TLS 1.2 by default. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
  /** What else must hold of a server's certificate, beside its authority and its host: why it is refused. */
  readonly refuses?: ((certificate: X509Certificate) => string | undefined) | undefined;
  /** Any certificate is accepted: the caller finds out by other means who answers. */
  readonly isUnverified?: boolean | undefined;
}

export interface GrpcChannelOptions {
  /** host:port */
  readonly address: string;
  /** Without it, the connection is not encrypted. */
  readonly tls?: GrpcTls | undefined;
  /** A larger message ends its call with RESOURCE_EXHAUSTED. */
  readonly maxMessageBytes: number;
  /**
   * The interval of keep-alive PINGs on a connection with open calls; without a response within `keepAliveTimeoutMs`
   * the connection is closed. etcd closes a connection that sends one more often than every 5 s.
   */
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
  /** After this many calls the next ones use a new connection. */
  readonly maxCallsPerConnection?: number;
}

/** Names in lower case. */
export type GrpcMetadata = Readonly<Record<string, string>>;

/** A call with one message each way. */
export interface UnaryCall {
  /** The message of the reply. Rejects with GrpcCallError. */
  readonly reply: Promise<Buffer>;
  /** Whether a cancelled call has had an effect is unknown. */
  cancel(): void;
}

/** The HTTP/2 windows: what the server may send per call, and in total, before this side has read it. */
const windowBytes = 2 * 1024 * 1024;
const longestTimeoutMs = 99_999_999;
/** A connection attempt is abandoned after this time, regardless of the timeouts of its callers. */
const connectTimeoutMs = 20_000;
/** HTTP/2 has 2^30 ids for the calls of one connection, and no call can be made once they are used up. */
const defaultMaxCallsPerConnection = 2 ** 29;

const mayBeRefused =
  'it closed the connection after the TLS handshake: it may not accept the certificate of this client; its log tells';

const closedByServer = 'the server closed the connection';

/** The state of one connection. */
interface CallCounts {
  /** Open calls: etcd treats a PING without open calls as an attack. */
  out: number;
  made: number;
}

/**
 * One connection to one server, replaced when it ends. A call is sent once, over the current connection, and is not
 * retried. The connection does not keep the process alive: the caller decides that for each call.
 */
export class GrpcChannel {
  readonly address: string;
  readonly #options: GrpcChannelOptions;
  #session: ClientHttp2Session | undefined;
  #connecting: Promise<boolean> | undefined;
  #problem = 'no connection was tried';
  /** Why the newest finished attempt failed, until one succeeds. An unfinished attempt does not replace it. */
  #failure: string | undefined;
  /** The newest connection has ended its TLS handshake, but the server has not said anything yet. */
  #isUnanswered = false;
  #isClosed = false;
  /** Every open connection: the current one, one being established, and earlier ones with open calls. */
  readonly #sessions = new Map<ClientHttp2Session, CallCounts>();

  constructor(options: GrpcChannelOptions) {
    this.address = options.address;
    this.#options = options;
  }

  /** Why there is no connection, as reported by the system: `connect ECONNREFUSED 127.0.0.1:2379`. */
  get problem(): string {
    return this.#problem;
  }

  /**
   * True once there is a connection; false when the attempt has failed, or after `timeoutMs`, while the attempt
   * continues. Callers share one attempt.
   */
  async connect(timeoutMs: number): Promise<boolean> {
    if (this.#isUsedUp()) this.reconnect();
    if (this.#usable() !== undefined) return true;
    if (this.#isClosed || timeoutMs <= 0) return false;
    this.#connecting ??= this.#open().finally(() => (this.#connecting = undefined));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => {
        this.#problem = this.#failure ?? (this.#isUnanswered ? mayBeRefused : 'it does not answer');
        resolve(false);
      }, timeoutMs);
      timer.unref();
    });
    return Promise.race([this.#connecting, late]).finally(() => clearTimeout(timer));
  }

  /** Throws GrpcCallError when there is no connection. */
  unary(path: string, request: Uint8Array, timeoutMs: number, metadata: GrpcMetadata = {}): UnaryCall {
    const leftMs = Math.max(1, Math.min(longestTimeoutMs, Math.ceil(timeoutMs)));
    const call = this.stream(path, { ...metadata, 'grpc-timeout': `${leftMs}m` });
    const reply = new Promise<Buffer>((resolve, reject) => {
      const timer = setTimeout(() => {
        call.cancel(GrpcCode.deadlineExceeded, `Deadline exceeded after ${leftMs} ms`);
      }, leftMs);
      timer.unref();
      let message: Buffer | undefined;
      call.on('data', (bytes: Buffer) => (message = bytes));
      call.on('error', reject);
      call.on('close', () => {
        clearTimeout(timer);
        if (message !== undefined) resolve(message);
        else
          reject(new GrpcCallError(GrpcCode.internal, 'the server ended the call without a reply', { wasSent: true }));
      });
    });
    call.sendOnly(request);
    return { reply, cancel: () => call.cancel() };
  }

  /** A call of any kind, without a time limit. Throws GrpcCallError when there is no connection. */
  stream(path: string, metadata: GrpcMetadata = {}): GrpcStream {
    const session = this.#usable();
    const counts = session && this.#sessions.get(session);
    if (session === undefined || counts === undefined) throw this.#notSent(this.#problem);
    const headers: OutgoingHttpHeaders = {
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': 'tenure-grpc-client',
      ...metadata,
    };
    let http: ClientHttp2Stream;
    try {
      http = session.request(headers);
    } catch (error) {
      throw this.#notSent(error instanceof Error ? reasonOf(error) : String(error), error);
    }
    counts.made += 1;
    counts.out += 1;
    http.once('close', () => {
      counts.out -= 1;
      this.#closeLeft(session);
    });
    return new GrpcStream(http, this.#options.maxMessageBytes);
  }

  /**
   * Later calls use a new connection; open calls keep this one. For a silent connection: it may be dead, which
   * keep-alive PINGs detect only after seconds.
   */
  reconnect(): void {
    const session = this.#session;
    this.#session = undefined;
    if (session !== undefined) this.#closeLeft(session);
  }

  /** Ends every open call. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#problem = 'the channel is closed';
    this.#session = undefined;
    for (const session of this.#sessions.keys()) session.destroy();
  }

  /** Node reports the end of a connection only after it has ended. */
  #usable(): ClientHttp2Session | undefined {
    const session = this.#session;
    if (session?.destroyed === true || session?.closed === true) this.#leave(session);
    return this.#session;
  }

  #isUsedUp(): boolean {
    const made = this.#session === undefined ? 0 : (this.#sessions.get(this.#session)?.made ?? 0);
    return made >= (this.#options.maxCallsPerConnection ?? defaultMaxCallsPerConnection);
  }

  #notSent(reason: string, cause?: unknown): GrpcCallError {
    return new GrpcCallError(GrpcCode.unavailable, reason, { wasSent: false, cause });
  }

  /** Throws for an invalid address or certificate. */
  #newSession(): ClientHttp2Session {
    const { tls } = this.#options;
    const pem = (bytes: Uint8Array | undefined): Buffer | undefined => bytes && Buffer.from(bytes);
    return connect(`${tls === undefined ? 'http' : 'https'}://${this.address}`, {
      settings: { enablePush: false, initialWindowSize: windowBytes },
      ...(tls === undefined
        ? {}
        : {
            ca: pem(tls.ca),
            cert: pem(tls.cert),
            key: pem(tls.key),
            ...(tls.crl === undefined ? {} : { crl: [...tls.crl] }),
            ...(tls.minVersion === undefined ? {} : { minVersion: tls.minVersion }),
            rejectUnauthorized: tls.isUnverified !== true,
            ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
            ...(tls.refuses === undefined ? {} : { checkServerIdentity: identityCheck(tls.refuses) }),
          }),
    });
  }

  async #open(): Promise<boolean> {
    let session: ClientHttp2Session;
    try {
      session = this.#newSession();
    } catch (error) {
      this.#fail(error instanceof Error ? reasonOf(error) : String(error));
      return false;
    }
    session.unref();
    this.#sessions.set(session, { out: 0, made: 0 });
    const timer = setTimeout(() => session.destroy(new Error('it does not answer')), connectTimeoutMs);
    timer.unref();
    return new Promise((resolve) => {
      this.#isUnanswered = false;
      let isConnected = false;
      let failure = closedByServer;
      // A server that does not accept a certificate closes the connection, and may not say why.
      session.once('connect', () => {
        if (this.#options.tls === undefined) return;
        this.#isUnanswered = true;
        failure = mayBeRefused;
      });
      session.on('error', (error: NodeJS.ErrnoException) => {
        const isSilent = this.#isUnanswered && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        if (!isSilent) failure = reasonOf(error);
      });
      // The first SETTINGS of the server: until then, the listener may not be an HTTP/2 server.
      session.once('remoteSettings', () => {
        clearTimeout(timer);
        this.#isUnanswered = false;
        if (session.destroyed) return;
        isConnected = true;
        this.#failure = undefined;
        session.setLocalWindowSize(windowBytes);
        this.#session = session;
        this.#keepAlive(session);
        resolve(true);
      });
      session.once('goaway', () => this.#leave(session));
      session.once('close', () => {
        clearTimeout(timer);
        this.#sessions.delete(session);
        if (isConnected) this.#leave(session);
        else this.#fail(failure);
        resolve(false);
      });
    });
  }

  /** Only after its last call: Node sends no PING on a connection that it is closing. */
  #closeLeft(session: ClientHttp2Session): void {
    if (session !== this.#session && this.#sessions.get(session)?.out === 0) session.close();
  }

  #leave(session: ClientHttp2Session): void {
    if (this.#session !== session) return;
    this.#session = undefined;
    this.#problem = closedByServer;
  }

  /** An attempt has ended without a connection. */
  #fail(reason: string): void {
    if (!this.#isClosed) this.#problem = this.#failure = reason;
  }

  #keepAlive(session: ClientHttp2Session): void {
    const { keepAliveIntervalMs, keepAliveTimeoutMs } = this.#options;
    let isAwaited = false;
    const timer = setInterval(() => {
      if (isAwaited || session.destroyed || this.#sessions.get(session)?.out === 0) return;
      isAwaited = true;
      const answer = new AnswerTimer(session, keepAliveTimeoutMs);
      session.ping((error: Error | null) => {
        // A connection closed by the server gets no PING, and its calls have until then to end.
        if (error !== null && !session.destroyed) return;
        answer.stop();
        isAwaited = false;
      });
    }, keepAliveIntervalMs);
    timer.unref();
    session.once('close', () => clearInterval(timer));
  }
}

/** Node's own check of the host comes first. */
function identityCheck(refuses: NonNullable<GrpcTls['refuses']>): typeof checkServerIdentity {
  return (host, certificate) => {
    const fault = checkServerIdentity(host, certificate);
    if (fault !== undefined) return fault;
    const reason = refuses(new X509Certificate(certificate.raw));
    return reason === undefined ? undefined : new Error(reason);
  };
}

/** On one line; for a name with several addresses, the reason for the first. */
function reasonOf(error: Error): string {
  const [first] = error instanceof AggregateError ? error.errors : [error];
  const words = first instanceof Error ? first.message : String(first);
  // OpenSSL's error for a server that does not answer a TLS handshake with TLS.
  if (/wrong version number|packet length too long/.test(words)) return 'it does not speak TLS';
  if (/alert certificate required/.test(words)) return 'it takes only clients with a certificate';
  const alert = /alert (bad certificate|unknown ca|certificate \w+|unsupported certificate)/.exec(words)?.[1];
  if (alert !== undefined) return `it does not accept the certificate of this client: ${alert}`;
  return words.replaceAll(/\s+/g, ' ').trim();
}
