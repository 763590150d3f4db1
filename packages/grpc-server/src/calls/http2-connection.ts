import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { errorCode } from '../http2/frame-type.ts';
import { Http2Session } from '../http2/http2-session.ts';
import type { Http2Stream } from '../http2/http2-stream.ts';
import type { ReceivedHead } from '../http2/request-head-reader.ts';
import type { SessionOwner } from '../http2/session-state.ts';
import { Budget } from '../limits/budget.ts';
import type { Connection, OpenCall } from './connection.ts';
import type { StreamCall } from './stream-call.ts';
import type { GrpcStatus, StatusFormat } from './grpc-status.ts';
import type { HttpQueue } from './http-queue.ts';
import type { ReplyQueue } from './reply-queue.ts';
import type { TurnShares } from './turn-shares.ts';
import type { TransportLimits } from '../limits/transport-limits.ts';
import type { TransportLog } from './transport-log.ts';

/** Limits for all connections together; see Connection for the meaning of each. */
export interface TransportBudgets {
  readonly openCalls: Budget;
  readonly requestBytes: Budget;
  readonly replyBytes: Budget;
  readonly resultBytes: Budget;
  readonly streamBytes: Budget;
}

/** The state shared by the connections of one transport. */
export interface SharedByConnections {
  readonly limits: TransportLimits;
  readonly log: TransportLog;
  readonly statusFormat: StatusFormat;
  readonly budgets: TransportBudgets;
  readonly replies: ReplyQueue;
  readonly http: HttpQueue;
  readonly shares: TurnShares;
}

/** Creates the call of a new stream; undefined when the connection has been closed instead. */
export type OpenStream = (id: number, head: ReceivedHead, connection: Http2Connection) => StreamCall | undefined;

/** One HTTP/2 connection: its calls, its budgets, and the detection of a client that floods, stalls or is dead. */
export class Http2Connection implements Connection, SessionOwner {
  readonly session: Http2Session;
  readonly remoteAddress: string;
  readonly commonName: string | undefined;
  readonly limits: TransportLimits;
  readonly log: TransportLog;
  readonly statusFormat: StatusFormat;
  readonly lastingCalls: Set<OpenCall> = new Set();
  readonly openCalls: Budget;
  readonly requestBytes: Budget;
  readonly replyBytes: Budget;
  readonly resultBytes: Budget;
  readonly replies: ReplyQueue;
  readonly http: HttpQueue;
  readonly streamBytes: Budget;
  readonly turnShare = { turn: 0, started: 0, bytes: 0 };
  sweeps = 0;
  /** The peer is a server of this cluster. */
  isPeer = false;
  /** Called when that is known. */
  onPeer: () => void = () => {};
  /** Called when it has ended. */
  onClosed: () => void = () => {};
  readonly #carrier: Socket;
  readonly #shares: TurnShares;
  readonly #openStream: OpenStream;
  #isCut = false;
  #framesAtSweep = -1;
  /** The sweeps since which a frame has been incomplete. */
  #partialSweeps = 0;
  #lastPingAtMs = performance.now();
  /** The bytes that the socket had read at the last sweep, and the time of the last PING response. */
  #bytesReadAtSweep = -1;
  #bytesReadAtPong = -1;
  #pingTimer: NodeJS.Timeout | undefined;

  /** `carrier`: the socket that carries its bytes in clear. */
  constructor(carrier: Socket, shared: SharedByConnections, openStream: OpenStream, commonName?: string) {
    const { limits, log, budgets, replies, http, shares } = shared;
    this.#carrier = carrier;
    this.#shares = shares;
    this.#openStream = openStream;
    this.commonName = commonName;
    this.remoteAddress = carrier.remoteAddress ?? '';
    this.limits = limits;
    this.log = log;
    this.statusFormat = shared.statusFormat;
    this.replies = replies;
    this.http = http;
    this.openCalls = new Budget(limits.maxConcurrentStreams, { total: budgets.openCalls });
    this.requestBytes = new Budget(limits.maxConnectionRequestBytes, { total: budgets.requestBytes });
    this.replyBytes = new Budget(limits.maxConnectionReplyBytes, { total: budgets.replyBytes });
    this.resultBytes = new Budget(limits.maxConnectionResultBytes, { total: budgets.resultBytes });
    this.streamBytes = new Budget(limits.maxConnectionStreamBytes, { total: budgets.streamBytes });
    this.session = new Http2Session(carrier, limits, this);
  }

  get isSecure(): boolean {
    return this.#carrier instanceof TLSSocket;
  }

  open(id: number, head: ReceivedHead): Http2Stream | undefined {
    return this.#openStream(id, head, this);
  }

  mayOpen(): boolean {
    return this.#shares.mayOpen(this);
  }

  mayRead(bytes: number): boolean {
    return this.#shares.mayRead(this, bytes);
  }

  outputHeld(bytes: number): void {
    if (bytes > 0) this.replyBytes.take(bytes);
    else this.replyBytes.giveBack(-bytes);
  }

  inputHeld(bytes: number): void {
    if (bytes > 0) this.requestBytes.take(bytes);
    else this.requestBytes.giveBack(-bytes);
  }

  misbehaved(reason: string): void {
    this.cut(reason);
  }

  failed(reason: string): void {
    this.log.debug({ reason, remoteAddress: this.remoteAddress }, 'an HTTP/2 connection failed');
  }

  closed(): void {
    clearTimeout(this.#pingTimer);
    this.#shares.forget(this);
    this.onClosed();
  }

  /** Checks every timeout of the connection. Called every sweepIntervalMs. */
  sweep(): void {
    this.sweeps += 1;
    this.session.sweep();
    for (const call of this.session.streams.values()) (call as StreamCall).sweep();
    if (this.session.isClosed) return;
    this.#sweepPartial();
    const keepAliveIsDue = performance.now() - this.#lastPingAtMs >= this.limits.keepAliveIntervalMs;
    if (this.#hasFallenSilent() || keepAliveIsDue) this.#ping();
  }

  /** Sends the client elsewhere and ends the calls that would not end by themselves. */
  drain(status: GrpcStatus): void {
    this.session.drain();
    for (const call of this.lastingCalls) call.refuse(status);
  }

  keyingMaterial(label: string, bytes: number): Buffer | undefined {
    const carrier = this.#carrier;
    // With TLS 1.2 two connections may have the same keys.
    if (!(carrier instanceof TLSSocket) || carrier.destroyed || carrier.getProtocol() !== 'TLSv1.3') return undefined;
    return carrier.exportKeyingMaterial(bytes, label, Buffer.alloc(0));
  }

  trustPeer(): void {
    this.isPeer = true;
    this.onPeer();
  }

  /** As many at once as the budget allows: responses on separate streams have no order. */
  get mayAnswerHttp(): boolean {
    return this.replyBytes.hasRoom;
  }

  get certificateName(): string | undefined {
    return this.commonName;
  }

  /** True when the connection is being ended: its memory will be free soon. */
  get isCut(): boolean {
    return this.#isCut || this.session.isClosed;
  }

  /** Ends the connection because of its client's behaviour, and logs that once. */
  cut(reason: string): void {
    if (this.#isCut || this.session.isClosed) return;
    this.#isCut = true;
    this.log.warn({ remoteAddress: this.remoteAddress }, reason);
    this.session.close(errorCode.enhanceYourCalm);
  }

  /** The same, and its memory is free at once: the client may not learn the reason. */
  shed(reason: string): void {
    this.cut(reason);
    this.#carrier.destroy();
  }

  /**
   * True when the client has sent nothing since the last sweep, and has not been pinged since then. So a silent
   * connection is pinged once, and a dead one cannot answer.
   */
  #hasFallenSilent(): boolean {
    const { bytesRead } = this.#carrier;
    const isSilent = bytesRead === this.#bytesReadAtSweep;
    this.#bytesReadAtSweep = bytesRead;
    return isSilent && bytesRead !== this.#bytesReadAtPong;
  }

  /** Closes the connection of a client that does not complete a frame, its headers, or its first SETTINGS. */
  #sweepPartial(): void {
    const isSame = this.session.isPartial && this.session.framesRead === this.#framesAtSweep;
    this.#framesAtSweep = this.session.framesRead;
    this.#partialSweeps = isSame ? this.#partialSweeps + 1 : 0;
    if (this.#partialSweeps * this.limits.sweepIntervalMs <= this.limits.requestTimeoutMs) return;
    this.cut('a client does not complete what it has begun to send');
  }

  #ping(): void {
    if (this.session.isClosed || this.#pingTimer !== undefined) return;
    this.#lastPingAtMs = performance.now();
    this.#awaitPong();
    this.session.ping(() => {
      clearTimeout(this.#pingTimer);
      this.#pingTimer = undefined;
      this.#bytesReadAtPong = this.#carrier.bytesRead;
    });
  }

  /**
   * Gives the client its time to answer. The result is evaluated only after the sockets have been read once more, and
   * not if the client has sent anything: when this server's own event loop was blocked, responses wait in the sockets
   * and the timer is late.
   */
  #awaitPong(): void {
    const { bytesRead } = this.#carrier;
    const judge = (): void => {
      if (this.#pingTimer === undefined || this.session.isClosed) return;
      if (this.#carrier.bytesRead !== bytesRead) {
        this.#awaitPong();
        return;
      }
      this.log.debug({}, 'a client does not answer a PING any more');
      this.#carrier.destroy();
    };
    this.#pingTimer = setTimeout(() => setImmediate(judge), this.limits.keepAliveTimeoutMs);
  }
}
