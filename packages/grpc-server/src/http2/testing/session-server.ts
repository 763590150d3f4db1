import { createServer, type AddressInfo, type Server } from 'node:net';
import { Http2Session } from '../http2-session.ts';
import type { SessionOwner } from '../session-state.ts';
import { Http2Stream } from '../http2-stream.ts';
import type { ReceivedHead } from '../request-head-reader.ts';
import type { SessionLimits } from '../session-limits.ts';

export const testLimits: SessionLimits = {
  maxConcurrentStreams: 100,
  maxHeaderPairs: 64,
  maxHeaderBytes: 16_384,
  maxHeaderBlockBytes: 65_536,
  maxContinuations: 16,
  maxSettingsEntries: 32,
  maxInvalidFrames: 100,
  maxRejectedStreams: 100,
  maxPingsPerSweep: 50_000,
  maxSettingsPerSweep: 10_000,
  maxWindowUpdatesPerSweep: 1_000_000,
  maxResetsPerSweep: 10_000,
  maxIneffectiveFramesPerSweep: 50_000,
  maxUnreadControlFrames: 4096,
  keepAliveMinTimeMs: 0,
  streamWindowBytes: 262_144,
  connectionWindowBytes: 4_194_304,
  maxOutputBytes: 262_144,
};

/** A stream that remembers what it receives, and sends what its test says. */
export class RecordedStream extends Http2Stream {
  readonly head: ReceivedHead;
  readonly data: Buffer[] = [];
  hasEnded = false;
  closes = 0;
  onReceived: () => void = () => {};
  onEnded: (stream: RecordedStream) => void = () => {};

  constructor(session: Http2Session, id: number, head: ReceivedHead) {
    super(session, id);
    this.head = head;
  }

  get body(): Buffer {
    return Buffer.concat(this.data);
  }

  start(): void {}

  received(chunk: Buffer): void {
    this.data.push(Buffer.from(chunk));
    this.onReceived();
  }

  halfClosed(): void {
    this.hasEnded = true;
    this.onEnded(this);
  }

  held(): void {}

  dataSent(): void {}

  drained(): void {}

  streamClosed(): void {
    this.closes += 1;
  }
}

/** One connection of a SessionServer, and its streams by their numbers. */
export class RecordedConnection implements SessionOwner {
  readonly streams = new Map<number, RecordedStream>();
  readonly faults: string[] = [];
  session: Http2Session | undefined;
  /** Called when the client of a stream has finished. */
  onEnded: (stream: RecordedStream) => void = () => {};
  heldInputBytes = 0;
  heldOutputBytes = 0;

  open(id: number, head: ReceivedHead): Http2Stream | undefined {
    if (this.session === undefined) return undefined;
    const stream = new RecordedStream(this.session, id, head);
    stream.onEnded = this.onEnded;
    this.streams.set(id, stream);
    return stream;
  }

  mayOpen(): boolean {
    return true;
  }

  mayRead(): boolean {
    return true;
  }

  outputHeld(bytes: number): void {
    this.heldOutputBytes += bytes;
  }

  inputHeld(bytes: number): void {
    this.heldInputBytes += bytes;
  }

  misbehaved(reason: string): void {
    this.faults.push(reason);
    this.session?.close(11);
  }

  failed(reason: string): void {
    this.faults.push(reason);
  }

  closed(): void {}

  stream(id: number): RecordedStream {
    const stream = this.streams.get(id);
    if (stream === undefined) throw new Error(`stream ${id} has not been opened`);
    return stream;
  }
}

/** A server of bare sessions, for one client after the other. */
export class SessionServer {
  readonly port: number;
  readonly connections: RecordedConnection[];
  readonly #server: Server;

  private constructor(server: Server, connections: RecordedConnection[]) {
    this.#server = server;
    this.connections = connections;
    this.port = (server.address() as AddressInfo).port;
  }

  static async start(
    limits: Partial<SessionLimits> = {},
    onEnded: (stream: RecordedStream) => void = () => {},
  ): Promise<SessionServer> {
    const connections: RecordedConnection[] = [];
    const server = createServer({ noDelay: true }, (socket) => {
      const connection = new RecordedConnection();
      connection.onEnded = onEnded;
      connection.session = new Http2Session(socket, { ...testLimits, ...limits }, connection);
      connections.push(connection);
      connection.session.start();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new SessionServer(server, connections);
  }

  /** The connection of the last client. */
  get last(): RecordedConnection {
    const last = this.connections.at(-1);
    if (last === undefined) throw new Error('no client has connected');
    return last;
  }

  /** Ends every connection. */
  close(): Promise<void> {
    for (const { session } of this.connections) session?.socket.destroy();
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
    });
  }
}
