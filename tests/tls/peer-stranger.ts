import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import * as grpc from '@grpc/grpc-js';
import type { TestAuthority, TestCertificate } from '@tenure/test-support';

/** What a stranger got from a server: the bytes that it could read, and how the connection ended. */
export interface Heard {
  readonly bytes: string;
  readonly end: string;
}

const http2Preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');

/** The connections of a stranger to the peer port of a server. */
export class PeerStranger {
  readonly #port: number;
  readonly #authority: TestAuthority;
  readonly #sockets = new Set<Socket>();

  constructor(peerUrl: string, authority: TestAuthority) {
    this.#port = Number(new URL(peerUrl).port);
    this.#authority = authority;
  }

  /** Sends these bytes without TLS. */
  send(bytes: Buffer): Promise<Heard> {
    const socket = this.#connect();
    socket.write(bytes);
    return heard(socket);
  }

  /** Speaks TLS and HTTP/2 with this certificate, or with none. */
  speak(certificate: TestCertificate | undefined): Promise<Heard> {
    const socket = this.#secure(certificate, ['h2']);
    socket.on('secureConnect', () => socket.write(http2Preface));
    return heard(socket);
  }

  /** The answer to a request of HTTP/1.1 with this certificate. */
  async get(path: string, certificate: TestCertificate): Promise<string> {
    const socket = this.#secure(certificate, ['http/1.1']);
    socket.on('secureConnect', () => socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`));
    return (await heard(socket)).bytes;
  }

  /** The status of an empty call with this certificate. */
  async call(path: string, certificate: TestCertificate): Promise<{ code: number; details: string }> {
    return callOf(`127.0.0.1:${this.#port}`, path, this.#credentials(certificate));
  }

  /** Begins this many handshakes and ends none; resolves when all are connected, or were refused. */
  async beginHandshakes(count: number): Promise<void> {
    await Promise.all(
      Array.from({ length: count }, async () => {
        const socket = this.#connect();
        // The head of a record with a ClientHello of which nothing follows.
        socket.write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252]));
        await new Promise<void>((resolve) => socket.on('connect', () => resolve()).on('close', () => resolve()));
      }),
    );
  }

  /** Opens streams with this certificate, sends on them without end, and reads nothing. */
  neverRead(certificate: TestCertificate): void {
    const socket = this.#secure(certificate, ['h2']);
    socket.on('secureConnect', () => {
      socket.write(http2Preface);
      const ping = Buffer.from('\0\0\x08\x06\0\0\0\0\x0012345678', 'latin1');
      const fill = (): void => {
        while (!socket.destroyed && socket.write(ping)) continue;
        socket.once('drain', fill);
      };
      fill();
    });
    socket.pause();
  }

  /** How many of its connections are open. */
  get open(): number {
    return [...this.#sockets].filter(({ destroyed }) => !destroyed).length;
  }

  leave(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #connect(): Socket {
    return this.#kept(connect({ host: '127.0.0.1', port: this.#port }));
  }

  #secure(certificate: TestCertificate | undefined, ALPNProtocols: string[]): TLSSocket {
    const ca = readFileSync(this.#authority.caFile);
    const socket = connectTls({ host: '127.0.0.1', port: this.#port, ca, ALPNProtocols, ...pemOf(certificate) });
    this.#kept(socket);
    return socket;
  }

  #kept(socket: Socket): Socket {
    this.#sockets.add(socket);
    return socket.on('error', () => {});
  }

  #credentials(certificate: TestCertificate): grpc.ChannelCredentials {
    const { cert = null, key = null } = pemOf(certificate);
    return grpc.credentials.createSsl(readFileSync(this.#authority.caFile), key, cert);
  }
}

/** The status of an empty call without TLS, by default. */
export function callOf(
  address: string,
  path: string,
  credentials = grpc.credentials.createInsecure(),
): Promise<{ code: number; details: string }> {
  const client = new grpc.Client(address, credentials, { 'grpc.use_local_subchannel_pool': 1 });
  const raw = (bytes: Buffer): Buffer => bytes;
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest(path, raw, raw, { deadline: Date.now() + 20_000 });
    call.on('data', () => {});
    call.on('error', () => {});
    call.on('status', ({ code, details }) => {
      resolve({ code, details });
      client.close();
    });
    call.end();
  });
}

function pemOf(certificate: TestCertificate | undefined): { cert?: Buffer; key?: Buffer } {
  if (certificate === undefined) return {};
  return { cert: readFileSync(certificate.certFile), key: readFileSync(certificate.keyFile) };
}

/** All that the socket can read until it is closed. */
function heard(socket: Socket): Promise<Heard> {
  let bytes = '';
  let end = 'closed';
  socket.on('data', (chunk: Buffer) => (bytes += chunk.toString('latin1')));
  socket.on('error', (error: NodeJS.ErrnoException) => (end = error.code ?? error.message));
  return new Promise((resolve) => socket.on('close', () => resolve({ bytes, end })));
}
