import type { Socket } from 'node:net';
import { ControlFrames } from './control-frames.ts';
import { FrameReader, type FrameSink } from './frame-reader.ts';
import type { Http2Stream } from './http2-stream.ts';
import { PingPolicy } from './ping-policy.ts';
import { ReceiveWindows } from './receive-windows.ts';
import { RequestFrames } from './request-frames.ts';
import { FrameCounts, type SessionLimits } from './session-limits.ts';
import type { SessionOwner, SessionState } from './session-state.ts';
import { SessionSender } from './session-sender.ts';
import { clientPreface, errorCode, frameType, maxFrameBytes, maxStreamId, setting } from './frame-type.ts';

/** How long a closed connection may still read what was sent to it, the reason above all. */
const lingerMs = 1000;
/** The longest wait for a client to learn that no new streams are served. */
const drainNoticeMs = 1000;
/** Streams that were reset here, whose late frames are ignored. */
const maxRememberedResets = 1000;

/**
 * The server's side of one HTTP/2 connection (RFC 9113) on a socket that has not been read: frames in, frames out, the
 * state of streams, flow control, and the counts that limit a client. A stream is an object of the server above.
 */
export class Http2Session implements FrameSink, SessionState {
  readonly socket: Socket;
  readonly sender: SessionSender;
  readonly limits: SessionLimits;
  readonly owner: SessionOwner;
  readonly streams = new Map<number, Http2Stream>();
  readonly windows: ReceiveWindows;
  readonly counts = new FrameCounts();
  readonly pingPolicy: PingPolicy;
  /** The last stream that the client has opened. */
  lastId = 0;
  /** The last stream that is served: lower than the client's last while the connection is ending. */
  lastServedId = maxStreamId;
  /** Complete frames so far. */
  framesRead = 0;
  readonly #reader: FrameReader;
  readonly #requests: RequestFrames;
  readonly #control: ControlFrames;
  readonly #recentResets = new Set<number>();
  readonly #pongs: (() => void)[] = [];
  #heldInput = 0;
  #isDraining = false;
  #isClosed = false;
  #lingerTimer: NodeJS.Timeout | undefined;
  #drainTimer: NodeJS.Timeout | undefined;

  constructor(socket: Socket, limits: SessionLimits, owner: SessionOwner) {
    this.socket = socket;
    this.limits = limits;
    this.owner = owner;
    this.#reader = new FrameReader(this, maxFrameBytes, clientPreface.length);
    this.pingPolicy = new PingPolicy(limits.keepAliveMinTimeMs);
    this.sender = new SessionSender({
      socket,
      maxOutputBytes: limits.maxOutputBytes,
      maxUnreadControlFrames: limits.maxUnreadControlFrames,
      pings: this.pingPolicy,
      onHeld: (bytes) => owner.outputHeld(bytes),
      onUnreadControlFrames: () => owner.misbehaved('a client does not read the answers to its frames'),
      onStreamEnded: (stream) => this.closeStream(stream),
      onIdle: () => this.#endIfDrained(),
    });
    this.windows = new ReceiveWindows(this.sender, limits);
    this.#requests = new RequestFrames(this);
    this.#control = new ControlFrames(this);
    this.sender.settings([
      [setting.maxConcurrentStreams, limits.maxConcurrentStreams],
      [setting.initialWindowSize, this.windows.initialStreamWindow],
      [setting.maxHeaderListSize, limits.maxHeaderBytes],
    ]);
    this.windows.grantFirst();
    socket.on('data', (chunk: Buffer) => this.#received(chunk));
    socket.on('close', () => this.#socketClosed());
    socket.on('error', (error) => owner.failed(error.message));
  }

  /** Begins to read the socket. */
  start(): void {
    this.socket.resume();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** True while a frame, or a header block, is incomplete, and before the first SETTINGS. */
  get isPartial(): boolean {
    return this.#reader.isPartial || this.#requests.isPartial || !this.#control.hasSettings;
  }

  /** Begins a new count of frames. */
  sweep(): void {
    this.counts.startAgain();
  }

  /** Calls back when the client answers. */
  ping(onPong: () => void): void {
    this.#pongs.push(onPong);
    this.sender.control(frameType.ping, 0, 0, [0, 0]);
  }

  /** The client has answered a PING: answers come in order. False when it answers none. */
  pong(): boolean {
    const onPong = this.#pongs.shift();
    onPong?.();
    return onPong !== undefined;
  }

  /** Serves the streams that the client opens until it has learned of this, then ends the connection. */
  drain(): void {
    if (this.#isDraining || this.#isClosed) return;
    this.#isDraining = true;
    this.sender.goAway(maxStreamId, errorCode.noError);
    this.ping(() => this.#stopServing());
    this.#drainTimer = setTimeout(() => this.#stopServing(), drainNoticeMs);
  }

  /** Ends the connection at once, and tells the client why. */
  close(code: number, text = ''): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#reader.close();
    clearTimeout(this.#drainTimer);
    this.sender.goAway(Math.min(this.lastId, this.lastServedId), code, text);
    this.sender.close();
    this.#lingerTimer = setTimeout(() => this.socket.destroy(), lingerMs);
    this.socket.resume();
    this.#closeAllStreams();
  }

  /** The client has broken a rule of HTTP/2 in a way that ends the connection. */
  connectionError(code: number, reason: string): void {
    if (this.#isClosed) return;
    this.owner.failed(reason);
    this.close(code, reason);
  }

  /** The client has broken a rule within one stream, which may exist no more. */
  streamError(id: number, code: number): void {
    this.counts.invalid += 1;
    if (this.counts.invalid > this.limits.maxInvalidFrames) {
      this.owner.misbehaved('a client sends too many invalid frames');
      return;
    }
    const stream = this.streams.get(id);
    if (stream !== undefined) this.resetStream(stream, code);
    else this.refuseStream(id, code);
  }

  /** Resets a stream that no call serves. */
  refuseStream(id: number, code: number): void {
    this.#rememberReset(id);
    this.sender.control(frameType.rstStream, 0, id, [code]);
  }

  resetStream(stream: Http2Stream, code: number): void {
    stream.resetCode = code;
    this.#rememberReset(stream.id);
    this.sender.drop(stream, code);
    this.closeStream(stream);
  }

  /** Both sides have ended, or one of them has reset it. */
  closeStream(stream: Http2Stream): void {
    if (stream.isClosed) return;
    stream.isClosed = true;
    this.streams.delete(stream.id);
    this.sender.drop(stream);
    stream.heldData = undefined;
    stream.streamClosed();
    if (this.#isDraining) this.#endIfDrained();
  }

  /** True for a stream that was reset here not long ago: the client may not have known when it sent a frame. */
  wasReset(id: number): boolean {
    return this.#recentResets.has(id);
  }

  /** A limit may have been exceeded. */
  checkCounts(): void {
    const fault = this.counts.fault(this.limits);
    if (fault !== undefined) this.owner.misbehaved(fault);
  }

  /** Keeps further frames until `resumeReading`. */
  stopReading(): void {
    this.#reader.stop();
    this.socket.pause();
  }

  resumeReading(): void {
    if (this.#isClosed || !this.#reader.isStopped) return;
    this.#reader.resume();
    this.#countInput();
    if (!this.#reader.isStopped) this.socket.resume();
  }

  /** Passes on what a stream held while it was paused. */
  readHeld(stream: Http2Stream): void {
    // What reads the data may ask for more of it: this loop goes on with it, however much there is.
    if (stream.isReadingHeld) return;
    stream.isReadingHeld = true;
    while (!stream.isPaused && !stream.isClosed) {
      const chunk = stream.heldData?.shift();
      if (chunk === undefined) break;
      stream.held();
      this.windows.read(stream, chunk.length);
      stream.received(chunk, false);
    }
    stream.isReadingHeld = false;
    this.#requests.halfClose(stream);
  }

  frame(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    if (this.#isClosed) return;
    this.framesRead += 1;
    if (this.#requests.isPartial && type !== frameType.continuation) {
      this.connectionError(errorCode.protocolError, 'a frame within a header block');
    } else if (!this.#control.hasSettings && type !== frameType.settings) {
      this.connectionError(errorCode.protocolError, 'no SETTINGS at the start');
    } else if (type === frameType.data) {
      this.#requests.data(flags, id, bytes, start, end);
    } else if (type === frameType.headers) {
      this.#requests.headers(flags, id, bytes, start, end);
    } else if (type === frameType.continuation) {
      this.#requests.continuation(flags, id, bytes, start, end);
    } else {
      this.#control.frame(type, flags, id, bytes, start, end);
    }
  }

  frameTooLarge(): void {
    this.connectionError(errorCode.frameSizeError, 'a frame that is too large');
  }

  #received(chunk: Buffer): void {
    if (this.#isClosed) return;
    if (!this.owner.mayRead(chunk.length)) this.stopReading();
    this.#reader.push(chunk);
    this.#countInput();
  }

  #countInput(): void {
    const held = this.#reader.heldBytes + this.#requests.heldBytes;
    if (held === this.#heldInput) return;
    const more = held - this.#heldInput;
    this.#heldInput = held;
    this.owner.inputHeld(more);
  }

  #rememberReset(id: number): void {
    if (this.#recentResets.size >= maxRememberedResets) {
      for (const oldest of this.#recentResets) {
        this.#recentResets.delete(oldest);
        break;
      }
    }
    this.#recentResets.add(id);
  }

  /** New streams are refused from now on, and the connection ends with the last one that is open. */
  #stopServing(): void {
    if (this.#isClosed || this.lastServedId !== maxStreamId) return;
    clearTimeout(this.#drainTimer);
    this.lastServedId = this.lastId;
    this.sender.goAway(this.lastId, errorCode.noError);
  }

  #endIfDrained(): void {
    const isServing = this.lastServedId === maxStreamId;
    if (!isServing && this.streams.size === 0 && this.sender.isIdle) this.close(errorCode.noError);
  }

  #closeAllStreams(): void {
    for (const stream of this.streams.values()) {
      if (stream.resetCode === errorCode.noError) stream.resetCode = errorCode.cancel;
      this.closeStream(stream);
    }
  }

  #socketClosed(): void {
    const wasClosed = this.#isClosed;
    this.#isClosed = true;
    this.#reader.close();
    this.#requests.close();
    this.#countInput();
    this.sender.socketClosed();
    clearTimeout(this.#lingerTimer);
    clearTimeout(this.#drainTimer);
    if (!wasClosed) this.#closeAllStreams();
    this.owner.closed();
  }
}
