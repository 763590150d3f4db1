import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, TLSSocket } from 'node:tls';
import { clientHelloState } from './client-hello.ts';
import type { HandshakeTurns } from './handshake-turns.ts';

/** How clients use TLS at one address. */
export interface ListenerTls {
  /** Certificate, key and authorities for handshakes from now on. */
  readonly context: SecureContextOptions;
  /** Calls back whenever they change. */
  onChange(listener: (context: SecureContextOptions) => void): void;
  /** A client needs a certificate that one of the authorities has signed. */
  readonly requiresCertificate: boolean;
  /** Why the certificate of a client is not accepted all the same; undefined if it is. */
  faultOf(certificate: X509Certificate | undefined): string | undefined;
  /** The common name of a client's certificate is told to services. */
  readonly namesCaller: boolean;
}

export interface TlsAcceptorOptions {
  readonly tls: ListenerTls;
  /** Shared by all listeners. */
  readonly turns: HandshakeTurns;
  /** From the connection to the end of the handshake. */
  readonly handshakeTimeoutMs: number;
  readonly onSecure: (socket: Socket, secured: SecuredSocket) => void;
  /** The connection is closed: without a certificate that is accepted, or with another fault. */
  readonly onRefused: (remoteAddress: string | undefined, reason: string) => void;
}

export interface SecuredSocket {
  readonly socket: TLSSocket;
  /** See CallerConnection. */
  readonly commonName: string | undefined;
}

interface Handshake {
  readonly socket: Socket;
  readonly remoteAddress: string | undefined;
  readonly end: () => void;
}

/**
 * Makes accepted sockets secure. A client that has not finished its handshake after `handshakeTimeoutMs` is
 * disconnected, and so is one whose certificate is not accepted, before anything that it sends is read.
 */
export class TlsAcceptor {
  readonly #options: TlsAcceptorOptions;
  readonly #server: Server;
  /** Begun handshakes, by the addresses of both ends: Node tells of a new TLS socket, but not of the one below it. */
  readonly #begun = new Map<string, Handshake>();
  /** The one whose socket is closing in this moment. */
  #closing: Handshake | undefined;

  constructor(options: TlsAcceptorOptions) {
    this.#options = options;
    const { context, requiresCertificate } = options.tls;
    this.#server = createServer({
      ...context,
      requestCert: requiresCertificate,
      rejectUnauthorized: requiresCertificate,
      ALPNProtocols: ['h2', 'http/1.1'],
      // The timer of this class comes first: it also covers the time before, and stalls of this process.
      handshakeTimeout: 10 * options.handshakeTimeoutMs,
    });
    options.tls.onChange((changed) => this.#server.setSecureContext(changed));
    this.#server.on('secureConnection', (secure) => this.#secured(secure));
    this.#server.on('tlsClientError', (error: NodeJS.ErrnoException, secure) => {
      // Node closes the socket of a certificate that it does not accept before it tells; both ends are unknown then.
      const { remoteAddress } = this.#begun.get(endsOf(secure) ?? '') ?? this.#closing ?? secure;
      options.onRefused(remoteAddress, String(secure.authorizationError ?? error.code ?? error.message));
      secure.destroy();
    });
  }

  /** Takes over a socket that has not been read. */
  accept(socket: Socket): void {
    let read: Buffer = Buffer.alloc(0);
    let leaveQueue = (): void => {};
    const cancelTimer = this.#limitTime(socket);
    const end = (): void => {
      cancelTimer();
      leaveQueue();
      socket.removeListener('data', onData);
    };
    socket.on('close', end);
    const onData = (chunk: Buffer): void => {
      read = read.length === 0 ? chunk : Buffer.concat([read, chunk]);
      const state = clientHelloState(read);
      if (state === 'partial') return;
      if (state !== 'complete') {
        this.#refuse(socket, state === 'other' ? 'the client does not speak TLS' : 'the ClientHello is too long');
        return;
      }
      socket.removeListener('data', onData);
      socket.pause();
      socket.unshift(read);
      leaveQueue = this.#options.turns.add(() => {
        this.#begin({ socket, remoteAddress: socket.remoteAddress, end });
      });
    };
    socket.on('data', onData);
  }

  #begin(handshake: Handshake): void {
    const { socket } = handshake;
    const ends = endsOf(socket);
    if (socket.destroyed || ends === undefined) {
      socket.destroy();
      return;
    }
    this.#begun.set(ends, handshake);
    socket.on('close', () => {
      if (this.#begun.get(ends) !== handshake) return;
      this.#begun.delete(ends);
      this.#closing = handshake;
      process.nextTick(() => (this.#closing = undefined));
    });
    this.#server.emit('connection', socket);
  }

  #secured(secure: TLSSocket): void {
    const ends = endsOf(secure);
    const handshake = this.#begun.get(ends ?? '');
    if (ends === undefined || handshake === undefined) {
      secure.destroy();
      return;
    }
    this.#begun.delete(ends);
    handshake.end();
    const { tls } = this.#options;
    const certificate = secure.getPeerX509Certificate();
    const fault = tls.faultOf(certificate);
    if (fault !== undefined) {
      this.#refuse(handshake.socket, fault);
      return;
    }
    const commonName = tls.namesCaller && secure.authorized ? certificate && commonNameOf(certificate) : undefined;
    this.#options.onSecure(handshake.socket, { socket: secure, commonName });
  }

  #refuse(socket: Socket, reason: string): void {
    this.#options.onRefused(socket.remoteAddress, reason);
    socket.destroy();
  }

  /** Disconnects the client in time. A late timer shows a stall of this process: the client gets its time again. */
  #limitTime(socket: Socket): () => void {
    const { handshakeTimeoutMs } = this.#options;
    let timer: NodeJS.Timeout;
    const start = (): void => {
      const startedMs = performance.now();
      timer = setTimeout(() => {
        const stalledMs = performance.now() - startedMs - handshakeTimeoutMs;
        if (stalledMs > handshakeTimeoutMs / 4) start();
        else this.#refuse(socket, 'the handshake took too long');
      }, handshakeTimeoutMs);
    };
    start();
    return () => clearTimeout(timer);
  }
}

/** No two open connections have the same. Undefined when the client has left. */
function endsOf(socket: Socket): string | undefined {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  if (remoteAddress === undefined || remotePort === undefined) return undefined;
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/**
 * Whether a client may speak this protocol here: the one that it chose in its handshake, or either one if it chose
 * none, as without TLS. Otherwise the connection is closed.
 */
export function agreeOn(carrier: Socket, protocol: 'h2' | 'http/1.1'): boolean {
  if (!(carrier instanceof TLSSocket)) return true;
  // Node serves HTTP/2 on a TLS socket only with this name.
  if (carrier.alpnProtocol === false) carrier.alpnProtocol = protocol;
  if (carrier.alpnProtocol === protocol) return true;
  carrier.destroy();
  return false;
}

/** A certificate with several common names has none that could be meant. */
export function commonNameOf(certificate: X509Certificate): string | undefined {
  const name: unknown = certificate.toLegacyObject().subject.CN;
  return typeof name === 'string' && name !== '' ? name : undefined;
}
