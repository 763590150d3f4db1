import { createServer as createHttp1Server } from 'node:http';
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from 'node:net';
import { Budget } from '../limits/budget.ts';
import { createCall } from '../calls/call-dispatcher.ts';
import { defaultStatusFormat, type StatusFormat } from '../calls/grpc-status.ts';
import { Http1Connection } from '../http1/http1-connection.ts';
import {
  Http2Connection,
  type OpenStream,
  type SharedByConnections,
  type TransportBudgets,
} from '../calls/http2-connection.ts';
import { HandshakeTurns } from './handshake-turns.ts';
import { HttpQueue } from '../calls/http-queue.ts';
import type { HttpStreams } from '../calls/http-stream.ts';
import { PeerReserve } from './peer-reserve.ts';
import { sniffProtocol } from './protocol-sniffer.ts';
import { ReplyQueue } from '../calls/reply-queue.ts';
import { TurnShares } from '../calls/turn-shares.ts';
import { agreeOn, type ListenerTls, TlsAcceptor } from './tls-acceptor.ts';
import type { GrpcRoutes, HttpHandler } from '../calls/call.ts';
import { defaultTransportLimits, type TransportLimits } from '../limits/transport-limits.ts';
import type { TransportLog } from '../calls/transport-log.ts';

export interface GrpcServerOptions<Requester = unknown> {
  readonly routes: GrpcRoutes<Requester>;
  /** Serves requests that are not gRPC: HTTP/1 requests, and HTTP/2 requests that are neither POST nor gRPC. */
  readonly onHttp: HttpHandler;
  /** Serves the requests whose bodies and responses are streams; without it there are none. */
  readonly httpStreams?: HttpStreams | undefined;
  readonly log: TransportLog;
  readonly limits?: Partial<TransportLimits>;
  /** How statuses are written to the wire; unchanged by default. */
  readonly statusFormat?: StatusFormat;
  /** The methods by which other servers connect: the only ones allowed on the connections reserved for them. */
  readonly peerPath?: string;
  /** Which of them its addresses are for, as the log says; 'clients' by default. */
  readonly callers?: 'clients' | 'servers';
}

export interface GrpcServer {
  /**
   * Accepts connections at one more address, with TLS if `tls` is given, otherwise without; port 0 lets the system
   * choose. Resolves with the bound address.
   */
  listen(host: string, port: number, tls?: ListenerTls): Promise<AddressInfo>;
  /**
   * Stops: no connection is accepted any more, clients are sent elsewhere (GOAWAY), streams end as Unavailable, unary
   * calls may finish. Connections left after `graceMs` are closed. Resolves when every socket is closed; a second call
   * waits for the first.
   */
  close(options: { readonly graceMs: number }): Promise<void>;
  /** Open sockets. */
  readonly connections: number;
  /** Calls, and HTTP requests, that have not ended. */
  readonly calls: number;
  /** Bytes of replies that are held for clients. */
  readonly replyBytes: number;
}

/**
 * gRPC over HTTP/2, cleartext with prior knowledge or over TLS, and HTTP/1.1 on the same port.
 *
 * The stages of a call: at an address with TLS a socket is made secure (tls-acceptor). Its protocol is detected
 * (protocol-sniffer), and an HTTP/2 socket becomes a connection (http2-connection), which is read for its share of each
 * turn of the event loop (turn-shares). The headers of a stream are checked (request-head), and it becomes a call of
 * one of three kinds (call-dispatcher, unary-call, server-stream-call, bidi-call), which splits its data into messages
 * (message-reader),
 * runs its handler, and ends with a status in trailers (stream-call). Large replies are built when there is room for
 * them (reply-queue). Other requests go to one HTTP handler (http-queue, http-call, http1-connection), or are streams
 * (http-stream).
 *
 * Every client is treated as hostile: the data that it may hold, send ahead, leave unread or leave unfinished is
 * bounded by a named limit (transport-limits), first for its stream, then for its connection, then for all connections
 * together, where the connection that holds most is closed to protect the others. One sweep over all connections checks
 * the timeouts, instead of a timer per call, so they cost a call nothing.
 */
export function createGrpcServer<Requester>(options: GrpcServerOptions<Requester>): GrpcServer {
  // A handler finds a requester only where a handler before it has put one.
  return new SocketServer(options as unknown as GrpcServerOptions);
}

/** A connection from its acceptance on. */
interface Accepted {
  readonly accepted: Socket;
  /** What carries its bytes in clear: the same socket, or the TLS socket above it. */
  readonly carrier: Socket;
  readonly commonName: string | undefined;
}

class SocketServer implements GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #limits: TransportLimits;
  readonly #listeners: Server[] = [];
  readonly #budgets: TransportBudgets;
  readonly #shared: SharedByConnections;
  readonly #sockets: Set<Socket> = new Set();
  readonly #reserve: PeerReserve;
  readonly #handshakeTurns = new HandshakeTurns();
  readonly #connections: Set<Http2Connection> = new Set();
  readonly #http1Connections: Map<Socket, Http1Connection> = new Map();
  /** Disconnects connections whose protocol is not known yet. */
  readonly #undecided: Map<Socket, () => void> = new Map();
  readonly #http1: ReturnType<typeof createHttp1Server>;
  readonly #sweeper: NodeJS.Timeout;
  #refusedSockets = 0;
  #failedHandshakes = 0;
  #lastHandshakeFault: object = {};
  #closing: Promise<void> | undefined;
  #onLastClosed: (() => void) | undefined;

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    this.#limits = { ...defaultTransportLimits, ...options.limits };
    // Without other servers no reserve is needed.
    this.#reserve = new PeerReserve(options.peerPath === undefined ? 0 : this.#limits.maxReservedConnections);
    this.#budgets = this.#createBudgets();
    this.#shared = {
      limits: this.#limits,
      log: options.log,
      statusFormat: options.statusFormat ?? defaultStatusFormat,
      budgets: this.#budgets,
      shares: new TurnShares(this.#limits),
      http: new HttpQueue(options.onHttp, options.log, this.#limits.maxWaitingHttpRequests),
      replies: new ReplyQueue({
        total: this.#budgets.replyBytes,
        maxTotalBytes: this.#limits.maxTotalReplyBytes,
        patienceMs: this.#limits.replyPatienceMs,
        onStuck: () => this.#shed('replyBytes'),
      }),
    };
    this.#http1 = this.#createHttp1();
    this.#sweeper = setInterval(() => this.#sweep(), this.#limits.sweepIntervalMs);
    this.#sweeper.unref();
  }

  get connections(): number {
    return this.#sockets.size;
  }

  get calls(): number {
    return this.#budgets.openCalls.taken;
  }

  get replyBytes(): number {
    return this.#budgets.replyBytes.taken;
  }

  listen(host: string, port: number, tls?: ListenerTls): Promise<AddressInfo> {
    if (this.#closing !== undefined) return Promise.reject(new Error('the transport is closed'));
    const acceptor = tls === undefined ? undefined : this.#createAcceptor(tls);
    const server = createNetServer({ noDelay: true, keepAlive: true }, (socket) => this.#accept(socket, acceptor));
    this.#listeners.push(server);
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.removeListener('error', reject);
        server.on('error', (error) => this.#options.log.error({ err: error }, 'a listening socket failed'));
        resolve(server.address() as AddressInfo);
      });
    });
  }

  close(options: { readonly graceMs: number }): Promise<void> {
    this.#closing ??= this.#close(options.graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    const listenersClosed = this.#listeners.map((server) => closeListener(server));
    clearInterval(this.#sweeper);
    for (const giveUp of this.#undecided.values()) giveUp();
    for (const connection of this.#connections) connection.drain(this.#shared.statusFormat.stopped);
    for (const connection of this.#http1Connections.values()) connection.drain(this.#shared.statusFormat.stopped);
    this.#http1.close(() => {});
    this.#http1.closeIdleConnections();
    const cutOff = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    await Promise.all(listenersClosed);
    // A listener counts a socket as closed a moment before the socket emits its event.
    if (this.#sockets.size > 0) await new Promise<void>((resolve) => (this.#onLastClosed = resolve));
    clearTimeout(cutOff);
  }

  #accept(socket: Socket, acceptor: TlsAcceptor | undefined): void {
    // Without a listener the error of one broken socket would end the process.
    socket.on('error', (error) => this.#options.log.debug({ err: error }, 'a connection failed'));
    const isFull = this.#sockets.size - this.#reserve.size >= this.#limits.maxConnections;
    if (this.#closing !== undefined || (isFull && !this.#reserve.take(socket))) {
      this.#refusedSockets += 1;
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      this.#reserve.giveBack(socket);
      this.#undecided.delete(socket);
      if (this.#sockets.size === 0) this.#onLastClosed?.();
    });
    this.#undecided.set(socket, () => socket.destroy());
    if (acceptor !== undefined) acceptor.accept(socket);
    else this.#detectProtocol({ accepted: socket, carrier: socket, commonName: undefined });
  }

  #createAcceptor(tls: ListenerTls): TlsAcceptor {
    return new TlsAcceptor({
      tls,
      turns: this.#handshakeTurns,
      handshakeTimeoutMs: this.#limits.handshakeTimeoutMs,
      onSecure: (accepted, { socket, commonName }) => {
        socket.on('error', (error) => this.#options.log.debug({ err: error }, 'a TLS connection failed'));
        this.#detectProtocol({ accepted, carrier: socket, commonName });
      },
      onRefused: (remoteAddress, reason) => {
        this.#failedHandshakes += 1;
        this.#lastHandshakeFault = { remoteAddress, reason };
      },
    });
  }

  #detectProtocol(connection: Accepted): void {
    const { accepted, carrier } = connection;
    const giveUp = sniffProtocol(carrier, this.#limits.prefaceTimeoutMs, {
      onHttp2: () => {
        this.#undecided.delete(accepted);
        if (!agreeOn(carrier, 'h2')) return;
        this.#serveHttp2(connection);
      },
      onHttp1: () => {
        this.#undecided.delete(accepted);
        if (this.#reserve.isUnproved(accepted)) {
          accepted.destroy();
          return;
        }
        if (!agreeOn(carrier, 'http/1.1')) return;
        const { httpStreams } = this.#options;
        const http1 = new Http1Connection(carrier, this.#shared, httpStreams, connection.commonName);
        this.#http1Connections.set(carrier, http1);
        carrier.on('close', () => this.#http1Connections.delete(carrier));
        this.#http1.emit('connection', carrier);
        carrier.resume();
      },
    });
    this.#undecided.set(accepted, giveUp);
  }

  #createHttp1(): ReturnType<typeof createHttp1Server> {
    const server = createHttp1Server(
      {
        maxHeaderSize: this.#limits.maxHeaderBytes,
        headersTimeout: this.#limits.http1HeadersTimeoutMs,
        // A stream of requests may last: the sweep ends the others (http1-connection).
        requestTimeout: 0,
        keepAliveTimeout: this.#limits.http1IdleTimeoutMs,
        connectionsCheckingInterval: this.#limits.sweepIntervalMs,
      },
      (request, response) => this.#http1Connections.get(request.socket)?.received(request, response),
    );
    // A client that does not read its response has the same timeout as one that does not send a request.
    server.timeout = this.#limits.http1IdleTimeoutMs;
    // The server itself never listens. This event makes it start its timeout checks and track its connections.
    server.emit('listening');
    return server;
  }

  #serveHttp2({ accepted, carrier, commonName }: Accepted): void {
    const { routes, peerPath, httpStreams } = this.#options;
    const openStream: OpenStream = (id, head, connection) => {
      if (head.headers[':path'] !== peerPath && this.#reserve.isUnproved(accepted)) {
        accepted.destroy();
        return undefined;
      }
      return createCall(id, head, connection, routes, httpStreams);
    };
    const connection = new Http2Connection(carrier, this.#shared, openStream, commonName);
    this.#connections.add(connection);
    connection.onClosed = () => this.#connections.delete(connection);
    connection.onPeer = () => this.#reserve.prove(accepted);
    connection.session.start();
  }

  #createBudgets(): TransportBudgets {
    const budget = (limit: number, held: keyof TransportBudgets): Budget => {
      const onGivenBack = held === 'replyBytes' ? () => this.#replyBytesFreed() : ignore;
      return new Budget(limit, { onExceeded: () => this.#relieve(held), onGivenBack });
    };
    return {
      openCalls: budget(this.#limits.maxTotalCalls, 'openCalls'),
      requestBytes: budget(this.#limits.maxTotalRequestBytes, 'requestBytes'),
      replyBytes: budget(this.#limits.maxTotalReplyBytes, 'replyBytes'),
      resultBytes: budget(this.#limits.maxTotalResultBytes, 'resultBytes'),
      streamBytes: budget(this.#limits.maxTotalStreamBytes, 'streamBytes'),
    };
  }

  #replyBytesFreed(): void {
    this.#shared.replies.freed();
    this.#shared.http.resume();
  }

  /** A limit is exceeded: a connection is closed, unless what is about to be free suffices. */
  #relieve(held: keyof TransportBudgets): void {
    let freed = 0;
    for (const connection of this.#connections) if (connection.isCut) freed += connection[held].taken;
    for (const connection of this.#http1Connections.values()) if (connection.isCut) freed += connection[held].taken;
    if (this.#budgets[held].isExceededBeyond(freed)) this.#shed(held);
  }

  /** Memory runs out: the connection that holds most of it is closed, so that all others are served. */
  #shed(held: keyof TransportBudgets): void {
    let largest: Http2Connection | Http1Connection | undefined;
    for (const connection of [...this.#connections, ...this.#http1Connections.values()]) {
      // The memory of another server is limited for its connection, and closing it would only break up the cluster.
      if (connection.isPeer || connection.isCut) continue;
      if (largest === undefined || connection[held].taken > largest[held].taken) largest = connection;
    }
    largest?.shed(`the server holds too much for its clients, and most of it for this one (${held})`);
  }

  #sweep(): void {
    // One line for all of them: a log that grows with every attempt could be flooded as well.
    if (this.#refusedSockets > 0) {
      this.#options.log.warn({ refused: this.#refusedSockets }, 'connections were refused: too many are open');
      this.#refusedSockets = 0;
    }
    if (this.#failedHandshakes > 0) {
      const last = { failed: this.#failedHandshakes, ...this.#lastHandshakeFault };
      const { callers = 'clients' } = this.#options;
      this.#options.log.warn(last, `TLS handshakes of ${callers} failed; address and reason are those of the last one`);
      this.#failedHandshakes = 0;
    }
    for (const connection of this.#connections) connection.sweep();
    for (const connection of this.#http1Connections.values()) connection.sweep();
  }
}

function closeListener(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

function ignore(): void {}
