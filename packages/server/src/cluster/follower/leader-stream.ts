/** How a stream between servers ended: a gRPC status code and its message. */
export interface LinkEnd {
  readonly code: number;
  readonly details: string;
}

/**
 * A follower's stream to the leader: messages in order, in both directions, until it ends. The transport is left open,
 * so that a simulator can do without sockets.
 */
export interface LeaderStream {
  /**
   * Sends a message. Returns false while no more should be sent, until `onDrain` is called. A message sent before
   * `onOpen` is lost.
   */
  write(message: Uint8Array): boolean;
  /** Ends the stream from this side. `onEnd` gets the status; cancelled by default. */
  cancel(code?: number, details?: string): void;
}

/** The listener of a stream. It is not called before the stream has been returned to the caller. */
export interface LeaderStreamListener {
  /** The stream is open: from now on messages may be sent. `channel` is given over TLS: see LinkTranscript. */
  onOpen(channel?: Uint8Array): void;
  onMessage(bytes: Buffer): void;
  onDrain(): void;
  /** Called once, also if the stream never opened. No other call follows. */
  onEnd(end: LinkEnd): void;
}

/** Opens a stream to the server at this URL, which is http://host:port, or https://host:port for TLS. */
export type OpenLeaderStream = (url: string, listener: LeaderStreamListener) => LeaderStream;
