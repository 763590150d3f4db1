import { readUint31 } from './frame-reader.ts';
import type { SessionState } from './session-state.ts';
import { errorCode, flag, frameType, maxFrameBytes, maxWindowBytes, setting } from './frame-type.ts';

/** The largest value of SETTINGS_MAX_FRAME_SIZE. */
const maxSettableFrameBytes = 2 ** 24 - 1;

/** All frames of one connection but HEADERS, CONTINUATION and DATA. */
export class ControlFrames {
  readonly #session: SessionState;
  /** The client has sent its first SETTINGS. */
  hasSettings = false;

  constructor(session: SessionState) {
    this.#session = session;
  }

  frame(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    switch (type) {
      case frameType.windowUpdate:
        return this.#windowUpdate(id, bytes, start, end);
      case frameType.rstStream:
        return this.#rstStream(id, bytes, start, end);
      case frameType.settings:
        return this.#settings(flags, id, bytes, start, end);
      case frameType.ping:
        return this.#ping(flags, id, bytes, start, end);
      case frameType.priority:
        return this.#priority(id, bytes, start, end);
      case frameType.goAway:
        return this.#goAway(id, bytes, start, end);
      case frameType.pushPromise:
        return this.#protocolError('PUSH_PROMISE from a client');
      default:
        // An unknown type is ignored (RFC 9113, section 5.5).
        this.#ineffective();
    }
  }

  #windowUpdate(id: number, bytes: Buffer, start: number, end: number): void {
    const session = this.#session;
    if (end - start !== 4) return this.#sizeError('WINDOW_UPDATE');
    const increment = readUint31(bytes, start);
    session.counts.windowUpdates += 1;
    session.checkCounts();
    if (session.isClosed) return;
    if (id === 0) {
      if (increment === 0) this.#protocolError('WINDOW_UPDATE by nothing');
      else if (!session.sender.addConnectionWindow(increment)) {
        session.connectionError(errorCode.flowControlError, 'a window that is too large');
      }
      return;
    }
    if (this.#isIdle(id)) return this.#protocolError('WINDOW_UPDATE on a stream that is not open');
    const stream = session.streams.get(id);
    if (stream === undefined) this.#ineffective();
    else if (increment === 0) session.streamError(id, errorCode.protocolError);
    else if (!session.sender.addStreamWindow(stream, increment)) session.streamError(id, errorCode.flowControlError);
  }

  #rstStream(id: number, bytes: Buffer, start: number, end: number): void {
    const session = this.#session;
    if (end - start !== 4) return this.#sizeError('RST_STREAM');
    if (this.#isIdle(id)) return this.#protocolError('RST_STREAM on a stream that is not open');
    session.counts.resets += 1;
    session.checkCounts();
    const stream = session.streams.get(id);
    if (stream === undefined) return;
    stream.resetCode = bytes.readUInt32BE(start);
    if (stream.resetCode === errorCode.noError) stream.resetCode = errorCode.cancel;
    session.closeStream(stream);
  }

  #settings(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    const session = this.#session;
    if (id !== 0) return this.#protocolError('SETTINGS on a stream');
    const isAck = (flags & flag.ack) !== 0;
    const length = end - start;
    if (isAck ? length !== 0 : length % 6 !== 0) return this.#sizeError('SETTINGS');
    if (isAck) {
      if (this.hasSettings) this.#ineffective();
      else this.#protocolError('no SETTINGS at the start');
      return;
    }
    session.counts.settings += 1;
    if (length / 6 > session.limits.maxSettingsEntries) {
      session.owner.misbehaved('a client sends a SETTINGS frame with too many entries');
      return;
    }
    for (let at = start; at < end && !session.isClosed; at += 6) {
      this.#set(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2));
    }
    if (session.isClosed) return;
    this.hasSettings = true;
    session.sender.control(frameType.settings, flag.ack, 0, []);
    session.checkCounts();
  }

  #set(identifier: number, value: number): void {
    const session = this.#session;
    if (identifier === setting.headerTableSize) {
      session.sender.setTableBytes(value);
    } else if (identifier === setting.initialWindowSize) {
      const isAllowed = value <= maxWindowBytes && session.sender.setInitialWindow(value, session.streams.values());
      if (!isAllowed) session.connectionError(errorCode.flowControlError, 'an initial window that is too large');
    } else if (identifier === setting.enablePush) {
      if (value > 1) this.#protocolError('a setting with a value that is not allowed');
    } else if (identifier === setting.maxFrameSize) {
      // Frames of the smallest size are sent, which every client accepts.
      const isAllowed = value >= maxFrameBytes && value <= maxSettableFrameBytes;
      if (!isAllowed) this.#protocolError('a setting with a value that is not allowed');
    }
  }

  #ping(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    const session = this.#session;
    if (id !== 0) return this.#protocolError('PING on a stream');
    if (end - start !== 8) return this.#sizeError('PING');
    if ((flags & flag.ack) !== 0) {
      if (!session.pong()) this.#ineffective();
      return;
    }
    session.counts.pings += 1;
    session.checkCounts();
    if (session.isClosed) return;
    if (!session.pingPolicy.received(performance.now(), session.streams.size)) {
      session.owner.failed('a client sends PINGs too often');
      session.close(errorCode.enhanceYourCalm, 'too_many_pings');
      return;
    }
    session.sender.control(frameType.ping, flag.ack, 0, [bytes.readUInt32BE(start), bytes.readUInt32BE(start + 4)]);
  }

  #priority(id: number, bytes: Buffer, start: number, end: number): void {
    const session = this.#session;
    if (id === 0) return this.#protocolError('PRIORITY without a stream');
    if (end - start !== 5) return session.streamError(id, errorCode.frameSizeError);
    this.#ineffective();
    if (readUint31(bytes, start) === id && !session.isClosed) session.streamError(id, errorCode.protocolError);
  }

  /** Without an error it concerns streams that a server opens, and there are none: the client closes the connection. */
  #goAway(id: number, bytes: Buffer, start: number, end: number): void {
    if (id !== 0) return this.#protocolError('GOAWAY on a stream');
    if (end - start < 8) return this.#sizeError('GOAWAY');
    this.#ineffective();
    if (bytes.readUInt32BE(start + 4) === errorCode.noError || this.#session.isClosed) return;
    this.#session.owner.failed('the client has found an error');
    this.#session.close(errorCode.noError);
  }

  /** No stream of this number has been opened. */
  #isIdle(id: number): boolean {
    return id % 2 === 0 || id > this.#session.lastId;
  }

  #ineffective(): void {
    this.#session.counts.ineffective += 1;
    this.#session.checkCounts();
  }

  #protocolError(reason: string): void {
    this.#session.connectionError(errorCode.protocolError, reason);
  }

  #sizeError(frame: string): void {
    this.#session.connectionError(errorCode.frameSizeError, `${frame} of a wrong size`);
  }
}
