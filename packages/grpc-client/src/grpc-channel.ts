import { connect, type ClientHttp2Session, type ClientHttp2Stream, type OutgoingHttpHeaders } from 'node:http2';
import { GrpcCallError, GrpcCode } from './grpc-call-error.ts';
import { GrpcStream } from './grpc-stream.ts';

/** The contents of PEM files. Without `ca`, the authorities that Node trusts. */
export interface GrpcTls {
  readonly ca?: Uint8Array | undefined;
  /** The certificate of this client, with `key`. */
  readonly cert?: Uint8Array | undefined;
  readonly key?: Uint8Array | undefined;
  /** The name in the server's certificate, when it is not that of the address. */
  readonly serverName?: string | undefined;
}

export interface GrpcChannelOptions {
  /** host:port */
  readonly address: string;
  /** Without it, the connection is not encrypted. */
  readonly tls?: GrpcTls | undefined;
  /** A larger message ends its call with RESOURCE_EXHAUSTED. */
  readonly maxMessageBytes: number;
  /**
   * A connection with calls on it is asked for a sign of life this often, and given up when there is none within
   * `keepAliveTimeoutMs`. etcd closes a connection that asks more often than every 5 s.
   */
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
  /** After so many calls the next ones go over another connection. */
  readonly maxCallsPerConnection?: number;
}

/** Names in lower case. */
export type GrpcMetadata = Readonly<Record<string, string>>;

/** A call with one message each way. */
export interface UnaryCall {
  /** The message of the reply. Rejects with GrpcCallError. */
  readonly reply: Promise<Buffer>;
  /** Whether a call that was cancelled has been carried out is not known. */
  cancel(): void;
}

/** What the server may send of one call, and of all together, before this side has read it. */
const windowBytes = 2 * 1024 * 1024;
const longestTimeoutMs = 99_999_999;
/** An attempt to connect is given up after this, however long its callers wait. */
const connectTimeoutMs = 20_000;
/** HTTP/2 has 2^30 ids for the calls of one connection, and no call can be made once they are used up. */
const defaultMaxCallsPerConnection = 2 ** 29;

/** What is known of one connection. */
interface CallCounts {
  /** Calls that are out: etcd takes a sign of life that is asked for without any for an attack. */
  out: number;
  made: number;
}

/**
 * One connection to one server, and the next one when that has ended. A call is sent once, over the connection that is
 * there, and is not sent again. The connection keeps no process alive: its user decides that for each call.
 */
export class GrpcChannel {
  readonly address: string;
  readonly #options: GrpcChannelOptions;
  #session: ClientHttp2Session | undefined;
  #connecting: Promise<boolean> | undefined;
  #problem = 'no connection was tried';
  #isClosed = false;
  /** Every connection that is not closed: this one, one that is being made, and those before with calls still out. */
  readonly #sessions = new Map<ClientHttp2Session, CallCounts>();

  constructor(options: GrpcChannelOptions) {
    this.address = options.address;
    this.#options = options;
  }

  /** Why there is no connection, in the words of the system: `connect ECONNREFUSED 127.0.0.1:2379`. */
  get problem(): string {
    return this.#problem;
  }

  /**
   * True once there is a connection; false when the attempt has failed, or after `timeoutMs`, while the attempt goes
   * on. Callers share one attempt.
   */
  async connect(timeoutMs: number): Promise<boolean> {
    if (this.#isUsedUp()) this.reconnect();
    if (this.#usable() !== undefined) return true;
    if (this.#isClosed || timeoutMs <= 0) return false;
    this.#connecting ??= this.#open().finally(() => (this.#connecting = undefined));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => {
        this.#problem = 'it does not answer';
        resolve(false);
      }, timeoutMs);
      timer.unref();
    });
    return Promise.race([this.#connecting, late]).finally(() => clearTimeout(timer));
  }

  /** Throws GrpcCallError where there is no connection. */
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
    call.end(request);
    return { reply, cancel: () => call.cancel() };
  }

  /** A call of any kind, for as long as both sides want. Throws GrpcCallError where there is no connection. */
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
   * Calls from now on go over another connection; those that are out keep this one. For one that is silent: it may be
   * dead without a word, and its signs of life tell so only after seconds.
   */
  reconnect(): void {
    const session = this.#session;
    this.#session = undefined;
    if (session !== undefined) this.#closeLeft(session);
  }

  /** Ends every call that is out. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#problem = 'the channel is closed';
    this.#session = undefined;
    for (const session of this.#sessions.keys()) session.destroy();
  }

  /** Node tells of the end of a connection only after it has ended. */
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

  /** Throws where the address or the certificates are none. */
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
            ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
          }),
    });
  }

  async #open(): Promise<boolean> {
    let session: ClientHttp2Session;
    try {
      session = this.#newSession();
    } catch (error) {
      this.#problem = error instanceof Error ? reasonOf(error) : String(error);
      return false;
    }
    session.unref();
    this.#sessions.set(session, { out: 0, made: 0 });
    const timer = setTimeout(() => session.destroy(new Error('it does not answer')), connectTimeoutMs);
    timer.unref();
    return new Promise((resolve) => {
      session.on('error', (error) => {
        if (!this.#isClosed) this.#problem = reasonOf(error);
      });
      // The first SETTINGS of the server: until then, who listens there may be no server of HTTP/2.
      session.once('remoteSettings', () => {
        clearTimeout(timer);
        if (session.destroyed) return;
        session.setLocalWindowSize(windowBytes);
        this.#session = session;
        this.#keepAlive(session);
        resolve(true);
      });
      session.once('goaway', () => this.#leave(session));
      session.once('close', () => {
        clearTimeout(timer);
        this.#sessions.delete(session);
        this.#leave(session);
        resolve(false);
      });
    });
  }

  /** Only with its last call: Node asks a connection that it closes for no sign of life. */
  #closeLeft(session: ClientHttp2Session): void {
    if (session !== this.#session && this.#sessions.get(session)?.out === 0) session.close();
  }

  #leave(session: ClientHttp2Session): void {
    if (this.#session !== session) return;
    this.#session = undefined;
    this.#problem = 'the server closed the connection';
  }

  #keepAlive(session: ClientHttp2Session): void {
    const { keepAliveIntervalMs, keepAliveTimeoutMs } = this.#options;
    const timer = setInterval(() => {
      if (session.destroyed || this.#sessions.get(session)?.out === 0) return;
      const late = setTimeout(() => {
        session.destroy(new Error('the server gave no sign of life'));
      }, keepAliveTimeoutMs);
      late.unref();
      // A connection that the server closes is asked for none, and its calls have until then to end.
      session.ping((error: Error | null) => {
        if (error === null || session.destroyed) clearTimeout(late);
      });
    }, keepAliveIntervalMs);
    timer.unref();
    session.once('close', () => clearInterval(timer));
  }
}

/** On one line; of a name with several addresses, the reason for the first. */
function reasonOf(error: Error): string {
  const [first] = error instanceof AggregateError ? error.errors : [error];
  const words = first instanceof Error ? first.message : String(first);
  // OpenSSL's words for a server that answers a TLS greeting with something else.
  if (/wrong version number|packet length too long/.test(words)) return 'it does not speak TLS';
  return words.replaceAll(/\s+/g, ' ').trim();
}
