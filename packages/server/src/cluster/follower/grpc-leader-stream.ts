import { GrpcCallError, GrpcChannel, type GrpcStream, type GrpcTls } from '@tenure/grpc-client';
import { GrpcCode } from '@tenure/grpc-server';
import { channelOf } from '../link/link-proof.ts';
import type { LeaderStream, LeaderStreamListener, LinkEnd } from './leader-stream.ts';

/** The interval of PINGs: only a missing answer shows that the network drops everything. */
const keepAliveIntervalMs = 1_000;
/** A leader that does not answer for this long has lost its leader lease anyway. */
const keepAliveTimeoutMs = 1_500;
const maxMessageBytes = 256 * 1024 * 1024;
/** After this time the next address is tried. */
const connectTimeoutMs = 2_000;

/** The stream to the leader over gRPC, on a connection of its own. */
export class GrpcLeaderStream implements LeaderStream {
  readonly #channel: GrpcChannel;
  readonly #listener: LeaderStreamListener;
  readonly #isSecure: boolean;
  /** Called once the connection is open. */
  #stream: GrpcStream | undefined;
  #isOver = false;

  /** `tls`: the certificates at an https URL. */
  constructor(url: string, listener: LeaderStreamListener, tls: GrpcTls = {}) {
    this.#listener = listener;
    const [scheme, address = ''] = url.split('://');
    this.#isSecure = scheme === 'https';
    this.#channel = new GrpcChannel({
      address,
      // Only from TLS 1.3 on are the keys of a connection its own: see channelLabel.
      ...(this.#isSecure ? { tls: { ...tls, minVersion: 'TLSv1.3' } } : {}),
      maxMessageBytes,
      keepAliveIntervalMs,
      keepAliveTimeoutMs,
    });
    void this.#connect();
  }

  write(message: Uint8Array): boolean {
    return this.#stream?.write(message) ?? false;
  }

  cancel(code?: number, details?: string): void {
    if (this.#stream !== undefined) this.#stream.cancel(code, details);
    else this.#over({ code: GrpcCode.cancelled, details: 'it was not opened' });
  }

  async #connect(): Promise<void> {
    const isConnected = await this.#channel.connect(connectTimeoutMs);
    if (this.#isOver) return;
    if (!isConnected) {
      this.#over({ code: GrpcCode.unavailable, details: this.#channel.problem });
      return;
    }
    let stream: GrpcStream;
    try {
      stream = this.#channel.stream('/tenure.peer.v1.Peer/Link');
    } catch (error) {
      // A leader that stops may close the connection right after it was opened.
      this.#over(endOf(error));
      return;
    }
    const channel = this.#isSecure ? channelOf(stream) : undefined;
    if (this.#isSecure && channel === undefined) {
      stream.on('error', () => {});
      stream.cancel();
      this.#over({ code: GrpcCode.unavailable, details: 'the connection was closed' });
      return;
    }
    this.#stream = stream;
    let end: LinkEnd = { code: GrpcCode.ok, details: '' };
    stream.on('data', (bytes: Buffer) => this.#listener.onMessage(bytes));
    stream.on('drain', () => this.#listener.onDrain());
    stream.on('error', (error) => (end = endOf(error)));
    stream.on('close', () => this.#over(end));
    this.#listener.onOpen(channel);
  }

  #over(end: LinkEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#channel.close();
    this.#listener.onEnd(end);
  }
}

function endOf(error: unknown): LinkEnd {
  if (error instanceof GrpcCallError) return error;
  return { code: GrpcCode.unknown, details: error instanceof Error ? error.message : String(error) };
}
