import { constants, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { Budget } from './budget.ts';
import type { Connection, OpenCall } from './connection.ts';
import type { GrpcStatus } from './grpc-status.ts';
import type { HttpQueue } from './http-queue.ts';
import type { ReplyQueue } from './reply-queue.ts';
import type { TransportLimits } from './transport-limits.ts';
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
  readonly budgets: TransportBudgets;
  readonly replies: ReplyQueue;
  readonly http: HttpQueue;
}

/** One HTTP/2 connection: its calls, its budgets, and the detection of a client that floods, stalls or is dead. */
export class Http2Connection implements Connection {
  readonly session: ServerHttp2Session;
  readonly remoteAddress: string;
  readonly commonName: string | undefined;
  readonly limits: TransportLimits;
  readonly log: TransportLog;
  readonly timedCalls: Set<OpenCall> = new Set();
  readonly lastingCalls: Set<OpenCall> = new Set();
  readonly openCalls: Budget;
  readonly requestBytes: Budget;
  readonly replyBytes: Budget;
  readonly resultBytes: Budget;
  readonly replies: ReplyQueue;
  readonly http: HttpQueue;
  readonly streamBytes: Budget;
  readonly streamTurn = { turn: 0, arrived: 0, started: 0 };
  sweeps = 0;
  /** The peer is a server of this cluster. */
  isPeer = false;
  /** Called when that is known. */
  onPeer: () => void = () => {};
  readonly #carrier: Socket | undefined;
  #pings = 0;
  #settings = 0;
  #resets = 0;
  #isCut = false;
  #lastPingAtMs = performance.now();
  /** The bytes that the socket had read at the last sweep, and the time of the last PING response. */
  #bytesReadAtSweep = -1;
  #bytesReadAtPong = -1;
  #pingTimer: NodeJS.Timeout | undefined;

  /** `carrier`: the socket that carries its bytes in clear. */
  constructor(session: ServerHttp2Session, shared: SharedByConnections, carrier?: Socket, commonName?: string) {
    const { limits, log, budgets, replies, http } = shared;
    this.session = session;
    this.#carrier = carrier;
    this.commonName = commonName;
    this.remoteAddress = session.socket.remoteAddress ?? '';
    this.limits = limits;
    this.log = log;
    this.replies = replies;
    this.http = http;
    this.openCalls = new Budget(limits.maxConcurrentStreams, { total: budgets.openCalls });
    this.requestBytes = new Budget(limits.maxConnectionRequestBytes, { total: budgets.requestBytes });
    this.replyBytes = new Budget(limits.maxConnectionReplyBytes, { total: budgets.replyBytes });
    this.resultBytes = new Budget(limits.maxConnectionResultBytes, { total: budgets.resultBytes });
    this.streamBytes = new Budget(limits.maxConnectionStreamBytes, { total: budgets.streamBytes });
    deferDestroy(session);
    session.setLocalWindowSize(limits.connectionWindowBytes);
    session.on('ping', () => {
      this.#pings += 1;
      if (this.#pings > limits.maxPingsPerSweep) this.cut('a client floods its connection with PING frames');
    });
    session.on('remoteSettings', () => {
      this.#settings += 1;
      if (this.#settings > limits.maxSettingsPerSweep) this.cut('a client floods its connection with SETTINGS frames');
    });
    session.on('error', (error) => log.debug({ err: error }, 'an HTTP/2 connection failed'));
    session.on('close', () => clearTimeout(this.#pingTimer));
  }

  /** Checks every timeout of the connection. Called every sweepIntervalMs. */
  sweep(): void {
    this.sweeps += 1;
    this.#pings = 0;
    this.#settings = 0;
    this.#resets = 0;
    for (const call of this.timedCalls) call.sweep();
    if (this.session.destroyed) return;
    const keepAliveIsDue = performance.now() - this.#lastPingAtMs >= this.limits.keepAliveIntervalMs;
    if (this.#hasFallenSilent() || keepAliveIsDue) this.#ping();
  }

  /** Sends the client elsewhere and ends the calls that would not end by themselves. */
  drain(status: GrpcStatus): void {
    this.session.close();
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
    return this.#isCut;
  }

  countReset(): void {
    this.#resets += 1;
    if (this.#resets > this.limits.maxResetsPerSweep) this.cut('a client resets too many of its calls');
  }

  /** Ends the connection because of its client's behaviour, and logs that once. */
  cut(reason: string): void {
    if (this.#isCut || this.session.destroyed) return;
    this.#isCut = true;
    this.log.warn({ remoteAddress: this.remoteAddress }, reason);
    this.session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /**
   * True when the client has sent nothing since the last sweep, and has not been pinged since then. After a protocol
   * error nghttp2 sends GOAWAY and reads no more, not even the end of the connection, and no event reports it: the
   * socket would stay open forever. So a silent connection is pinged once, and a dead one cannot answer.
   */
  #hasFallenSilent(): boolean {
    const { bytesRead } = this.session.socket;
    const isSilent = bytesRead === this.#bytesReadAtSweep;
    this.#bytesReadAtSweep = bytesRead;
    return isSilent && bytesRead !== this.#bytesReadAtPong;
  }

  #ping(): void {
    if (this.session.destroyed || this.session.closed || this.#pingTimer !== undefined) return;
    this.#lastPingAtMs = performance.now();
    this.#awaitPong();
    this.session.ping((error) => {
      clearTimeout(this.#pingTimer);
      this.#pingTimer = undefined;
      if (error === null && !this.session.destroyed) this.#bytesReadAtPong = this.session.socket.bytesRead;
    });
  }

  /**
   * Gives the client its time to answer. The result is evaluated only after the sockets have been read once more, and
   * not if the client has sent anything: when this server's own event loop was blocked, responses wait in the sockets
   * and the timer is late.
   */
  #awaitPong(): void {
    const { bytesRead } = this.session.socket;
    const judge = (): void => {
      if (this.#pingTimer === undefined || this.session.destroyed) return;
      if (this.session.socket.bytesRead !== bytesRead) {
        this.#awaitPong();
        return;
      }
      this.log.debug({}, 'a client does not answer a PING any more');
      this.session.destroy();
    };
    this.#pingTimer = setTimeout(() => setImmediate(judge), this.limits.keepAliveTimeoutMs);
  }
}

/**
 * Lets a session that is destroyed while it reads continue to the end of the received data. Node destroys a session at
 * once when a frame is invalid or a GOAWAY names an error, and still passes data to it; on Node 22 the next stream that
 * opens in the same packet then has no reader for its data, which ends the process. Any client could send that packet.
 */
function deferDestroy(session: ServerHttp2Session): void {
  const destroy = session.destroy.bind(session);
  session.destroy = (error, code) => void setImmediate(() => destroy(error, code));
}
