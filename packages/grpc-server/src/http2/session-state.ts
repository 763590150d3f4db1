import type { Http2Stream } from './http2-stream.ts';
import type { PingPolicy } from './ping-policy.ts';
import type { ReceivedHead } from './request-head-reader.ts';
import type { ReceiveWindows } from './receive-windows.ts';
import type { FrameCounts, SessionLimits } from './session-limits.ts';
import type { SessionSender } from './session-sender.ts';

/** The server above a connection. */
export interface SessionOwner {
  /** Creates the stream of a new request; its `start` is called next. Undefined when the connection is to end. */
  open(id: number, head: ReceivedHead): Http2Stream | undefined;
  /**
   * Whether one more request may begin in this turn of the event loop. After false the session reads on when
   * `resumeReading` is called.
   */
  mayOpen(): boolean;
  /** Bytes have been read in this turn; false as above. */
  mayRead(bytes: number): boolean;
  /** Memory for frames: those that the socket has not taken, and one that has not arrived completely. */
  outputHeld(bytes: number): void;
  inputHeld(bytes: number): void;
  /** The client misbehaves: the owner closes the connection. */
  misbehaved(reason: string): void;
  /** An error of the client, or of the socket, for the log: the connection is ending. */
  failed(reason: string): void;
  /** The socket is closed, and all streams are. Called once. */
  closed(): void;
}

/** A connection, as the handlers of its frames see it. */
export interface SessionState {
  readonly limits: SessionLimits;
  readonly owner: SessionOwner;
  readonly sender: SessionSender;
  readonly windows: ReceiveWindows;
  readonly counts: FrameCounts;
  readonly pingPolicy: PingPolicy;
  readonly streams: Map<number, Http2Stream>;
  /** The last stream that the client has opened. */
  lastId: number;
  /** The last stream that is served: lower than the client's last while the connection is ending. */
  readonly lastServedId: number;
  readonly isClosed: boolean;
  /** Ends the connection at once, and tells the client why. */
  close(code: number, text?: string): void;
  /** The client has broken a rule of HTTP/2 in a way that ends the connection. */
  connectionError(code: number, reason: string): void;
  /** The client has broken a rule within one stream, which may exist no more. */
  streamError(id: number, code: number): void;
  /** Resets a stream that no call serves. */
  refuseStream(id: number, code: number): void;
  /** Both sides have ended, or one of them has reset it. */
  closeStream(stream: Http2Stream): void;
  /** True for a stream that was reset here not long ago: the client may not have known when it sent a frame. */
  wasReset(id: number): boolean;
  /** A limit may have been exceeded. */
  checkCounts(): void;
  /** Keeps further frames until the owner resumes. */
  stopReading(): void;
  /** The client has answered a PING: answers come in order. False when none was sent. */
  pong(): boolean;
}
