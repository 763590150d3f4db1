/** How a stream between servers ended: a status code of gRPC, and its words. */
export interface LinkEnd {
  readonly code: number;
  readonly details: string;
}

/**
 * A follower's way to the leader: messages in order, in both directions, until it ends. What carries it is not told, so
 * that a simulator can carry it without sockets.
 */
export interface LeaderStream {
  /**
   * Sends a message. False while no more should be sent: `onDrain` tells when it may. A message that is sent before
   * `onOpen` is lost.
   */
  write(message: Uint8Array): boolean;
  /** Ends it from this side: `onEnd` is told the code and the words, cancelled if none are given. */
  cancel(code?: number, details?: string): void;
}

/** The listener of a stream. It is not called before the stream has been returned to the caller. */
export interface LeaderStreamListener {
  /** The other side can be reached: from now on messages may be sent. */
  onOpen(): void;
  onMessage(bytes: Buffer): void;
  onDrain(): void;
  /** Called once, also when it never opened; nothing is told after it. */
  onEnd(end: LinkEnd): void;
}

/** Begins a stream to the server at `address`, which is host:port. */
export type OpenLeaderStream = (address: string, listener: LeaderStreamListener) => LeaderStream;
