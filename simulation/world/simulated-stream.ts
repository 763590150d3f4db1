import type { NodeClock } from '@tenure/test-support';
import { frameHeadroomBytes } from '@tenure/codec';
import { type CallerConnection, GrpcCode, GrpcStatus, builtReply } from '@tenure/grpc-server';
import type { DuplexCall, MethodHandler } from '../../packages/server/src/transport/transport.ts';
import type { CallEnd, ClientStream } from './client-connection.ts';
import { Pipe, type PipeNetwork } from './pipe.ts';

const maxReceiveBytes = 2 * 1024 * 1024;

/** One end of a stream: a process, by its clock, and its name in cuts and traces. */
export interface StreamEnd {
  readonly name: string;
  readonly clock: NodeClock;
}

export interface StreamListener {
  onOpen?(): void;
  onMessage(message: Buffer): void;
  onEnd(end: CallEnd & { readonly fromServer: boolean }): void;
}

export interface StreamOptions {
  readonly network: PipeNetwork;
  /** A server stops sending when this much has not reached its client, as with the windows of HTTP/2. */
  readonly windowBytes: number;
  readonly client: StreamEnd;
  readonly server: StreamEnd;
  readonly path: string;
  readonly connection: CallerConnection;
  /** Of the user who calls. */
  readonly token?: string | undefined;
  readonly listener: StreamListener;
  readonly onOver: (stream: SimulatedStream) => void;
  /** A message of the client has reached the server's socket, even while its process is paused. */
  readonly onSocket?: ((stream: SimulatedStream, message: Buffer) => void) | undefined;
  /** A handler has failed with an error that is not a status. */
  readonly onFailure: (path: string, error: unknown) => void;
}

const broken: CallEnd = { code: GrpcCode.unavailable, message: 'the connection broke' };

/** A call of any kind between two processes. It ends on each side at a time of its own. */
export class SimulatedStream implements ClientStream {
  readonly #options: StreamOptions;
  readonly #toServer: Pipe;
  readonly #toClient: Pipe;
  readonly #call: ServedCall;
  #isOverAtClient = false;
  #isHalfClosed = false;

  constructor(options: StreamOptions) {
    const { network, client, server } = options;
    this.#options = options;
    this.#toServer = new Pipe(network, client.name, server.name, server.clock);
    this.#toClient = new Pipe(network, server.name, client.name, client.clock);
    this.#call = new ServedCall(options, {
      send: (message, taken) => {
        this.#toClient.send(() => {
          if (!this.#isOverAtClient) options.listener.onMessage(message);
          taken();
        });
      },
      drain: (drain) => this.#toServer.send(drain),
      end: ({ code, message }) => this.#toClient.send(() => this.#endAtClient({ code, message }, true)),
    });
  }

  /** Nothing more reaches the server on this stream. */
  get isBroken(): boolean {
    return this.#call.isUnread;
  }

  /** A call with one request that is to be answered. */
  get isRequest(): boolean {
    return this.#isHalfClosed;
  }

  get path(): string {
    return this.#options.path;
  }

  get clientName(): string {
    return this.#options.client.name;
  }

  get serverName(): string {
    return this.#options.server.name;
  }

  /** Connects to the handler. Without one the connection is refused. */
  open(handlerNow: () => MethodHandler | undefined): void {
    this.#toServer.send(() => {
      const handler = handlerNow();
      if (handler === undefined) {
        this.breakOff(0, 0);
        return;
      }
      this.#toClient.send(() => {
        if (!this.#isOverAtClient) this.#options.listener.onOpen?.();
      });
      this.#handle(handler);
    });
  }

  write(message: Uint8Array): void {
    const bytes = Buffer.from(message);
    this.#toServer.send(
      () => this.#call.receive(bytes),
      () => this.#options.onSocket?.(this, bytes),
    );
  }

  halfClose(): void {
    this.#isHalfClosed = true;
    this.#toServer.send(() => this.#call.receiveHalfClose());
  }

  cancel(code: number = GrpcCode.cancelled, message = 'the call was cancelled'): void {
    if (this.#isOverAtClient) return;
    this.#toServer.send(() => this.#call.close());
    this.#options.client.clock.deliver(0, () => this.#endAtClient({ code, message }, false));
  }

  /** The connection breaks. Each end notices after a time of its own; messages on the way are lost. */
  breakOff(clientNoticesMs: number, serverNoticesMs: number): void {
    const { client, server } = this.#options;
    this.#call.cutOff();
    client.clock.deliver(clientNoticesMs, () => this.#endAtClient(broken, false));
    server.clock.deliver(serverNoticesMs, () => this.#call.close());
  }

  #endAtClient(end: CallEnd, fromServer: boolean): void {
    if (this.#isOverAtClient) return;
    this.#isOverAtClient = true;
    this.#options.listener.onEnd({ ...end, fromServer });
    this.#options.onOver(this);
  }

  #handle(handler: MethodHandler): void {
    const call = this.#call;
    if (handler.kind === 'bidi') {
      handler.handle(call);
      call.start();
      return;
    }
    call.onMessage = (request) => {
      const answer =
        handler.kind === 'unary'
          ? Promise.resolve()
              .then(() => handler.handle(request, call))
              .then(builtReply)
              .then((framed) => void call.send(framed))
          : handler.handle(request, call, (framed) => call.sendWhenTaken(framed));
      answer.then(
        () => call.end(new GrpcStatus(GrpcCode.ok, '')),
        (error: unknown) => {
          if (error instanceof GrpcStatus) call.end(error);
          else if (!call.isOver && !this.#options.server.clock.dead) this.#options.onFailure(call.path, error);
        },
      );
    };
    call.start();
  }
}

type ServedCallOptions = Pick<StreamOptions, 'path' | 'connection' | 'token' | 'windowBytes'>;

interface CallSink {
  /** `taken` is called when the client has read the message. */
  readonly send: (message: Buffer, taken: () => void) => void;
  /** Tells the server, after the delay of a window update, that it may send more. */
  readonly drain: (drain: () => void) => void;
  readonly end: (status: GrpcStatus) => void;
}

/** The server's side of a stream. */
class ServedCall implements DuplexCall {
  readonly path: string;
  readonly metadata: DuplexCall['metadata'];
  readonly deadlineMs = Infinity;
  readonly connection: CallerConnection;
  readonly maxReceiveBytes = maxReceiveBytes;
  onMessage: (message: Buffer) => void = () => {};
  onHalfClose: () => void = () => {};
  onDrain: () => void = () => {};
  onClose: () => void = () => {};
  readonly #sink: CallSink;
  readonly #windowBytes: number;
  #ending: AbortController | undefined;
  #isStarted = false;
  #isPaused = false;
  #isCutOff = false;
  #inbox: (() => void)[] = [];
  #isStopped = false;
  #outBytes = 0;
  #mustDrain = false;
  readonly #takers: (() => void)[] = [];

  constructor({ path, connection, token, windowBytes }: ServedCallOptions, sink: CallSink) {
    this.metadata = token === undefined ? {} : { token };
    this.path = path;
    this.connection = connection;
    this.#windowBytes = windowBytes;
    this.#sink = sink;
  }

  get signal(): AbortSignal {
    this.#ending ??= new AbortController();
    if (this.#isStopped && !this.#ending.signal.aborted) this.#ending.abort();
    return this.#ending.signal;
  }

  get isOver(): boolean {
    return this.#isStopped;
  }

  get isUnread(): boolean {
    return this.#isStopped || this.#isCutOff;
  }

  get bufferedBytes(): number {
    return Math.max(0, this.#outBytes - this.#windowBytes);
  }

  start(): void {
    this.#isStarted = true;
    this.#readInbox();
  }

  receive(message: Buffer): void {
    this.#inbox.push(() => this.onMessage(message));
    this.#readInbox();
  }

  receiveHalfClose(): void {
    this.#inbox.push(() => this.onHalfClose());
    this.#readInbox();
  }

  send(framed: Buffer): boolean {
    if (this.#isStopped || this.#isCutOff) return true;
    const message = Buffer.from(framed.subarray(frameHeadroomBytes));
    this.#outBytes += message.length;
    this.#sink.send(message, () => this.#taken(message.length));
    if (this.#outBytes < this.#windowBytes) return true;
    this.#mustDrain = true;
    return false;
  }

  sendWhenTaken(framed: Buffer): Promise<void> {
    if (this.#isStopped) return Promise.reject(new GrpcStatus(GrpcCode.cancelled, 'the call is over'));
    return this.send(framed) ? Promise.resolve() : new Promise((resolve) => this.#takers.push(resolve));
  }

  end(status: GrpcStatus): void {
    if (this.#isStopped) return;
    if (!this.#isCutOff) this.#sink.end(status);
    this.close();
  }

  /** Nothing more is sent or received; the handler does not know yet. */
  cutOff(): void {
    this.#isCutOff = true;
  }

  close(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#inbox = [];
    this.#ending?.abort();
    this.onClose();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#readInbox();
  }

  trustPeer(): void {}

  #readInbox(): void {
    while (this.#isStarted && !this.#isPaused && !this.#isStopped && !this.#isCutOff) {
      const next = this.#inbox.shift();
      if (next === undefined) return;
      next();
    }
  }

  #taken(bytes: number): void {
    this.#outBytes -= bytes;
    if (!this.#mustDrain || this.#outBytes >= this.#windowBytes / 2) return;
    this.#mustDrain = false;
    this.#sink.drain(() => {
      if (this.#isStopped) return;
      for (const resolve of this.#takers.splice(0)) resolve();
      this.onDrain();
    });
  }
}
