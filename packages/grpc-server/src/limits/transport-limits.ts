import type { SessionLimits } from '../http2/session-limits.ts';

/**
 * Every limit that the transport sets for its clients, with a name and in one place. A well-behaved client reaches none
 * of them; a hostile or broken one reaches a limit instead of an unbounded queue.
 */
export interface TransportLimits extends SessionLimits {
  /** Largest message that is received, in bytes of protobuf, after decompression too. Beyond: ResourceExhausted. */
  readonly maxReceiveBytes: number;
  /** Sockets open at once, HTTP/1 and HTTP/2 together. One more is closed as it arrives. */
  readonly maxConnections: number;
  /** Sockets beyond these that are reserved for other servers: see PeerReserve. */
  readonly maxReservedConnections: number;
  /** Open calls on all connections together. Beyond, the connection that holds most of them is closed. */
  readonly maxTotalCalls: number;
  /**
   * Streams of one connection, and of all together, whose calls begin in one turn of the event loop. The rest wait for
   * the next turns, round-robin between connections.
   */
  readonly maxStreamStartsPerTurn: number;
  readonly maxTotalStreamStartsPerTurn: number;
  /** Bytes of one connection that are read in one turn of the event loop; the rest waits for the next turns. */
  readonly maxReadBytesPerTurn: number;
  /** How long all connections together are read in one turn; what has been begun is finished. */
  readonly readSliceMs: number;
  /**
   * Unsent bytes of a bidirectional stream's messages from which on `send` returns false. A low limit lets a watch of a
   * slow reader fall behind sooner, and its events are then sent together.
   */
  readonly maxStreamBufferedBytes: number;
  /**
   * Bytes of unfinished requests, and of data that waits for paused streams, for one connection. Beyond:
   * ResourceExhausted for the call that exceeds it.
   */
  readonly maxConnectionRequestBytes: number;
  /** Bytes of unary replies that wait for one connection's reader. Beyond: ResourceExhausted for its further calls. */
  readonly maxConnectionReplyBytes: number;
  /**
   * Memory of one connection's large replies that wait to be built: the keys that they refer to. Beyond:
   * ResourceExhausted for its further ones.
   */
  readonly maxConnectionResultBytes: number;
  /** Bytes of all bidirectional streams of one connection. Beyond, each of them is left 16 KiB. */
  readonly maxConnectionStreamBytes: number;
  /** The same for all connections together. Beyond, the connection that holds most of it is closed. */
  readonly maxTotalRequestBytes: number;
  /**
   * A large reply is built only when there is room for it in seven eighths of this; a larger one is ResourceExhausted.
   * When the first of the queue has waited for `replyPatienceMs` and none was built meanwhile, the connection that
   * holds most is closed.
   */
  readonly maxTotalReplyBytes: number;
  readonly replyPatienceMs: number;
  readonly maxTotalResultBytes: number;
  readonly maxTotalStreamBytes: number;
  /** Queued HTTP requests of one connection. Beyond: 503 over HTTP/2; HTTP/1's connection ends. */
  readonly maxWaitingHttpRequests: number;
  readonly maxPipelinedRequests: number;
  /** The maximum time from a connection to the end of its TLS handshake. */
  readonly handshakeTimeoutMs: number;
  /** The maximum time until the protocol of a connection is known; over TLS from the end of the handshake on. */
  readonly prefaceTimeoutMs: number;
  /** The maximum time for the message of a unary or server-streaming call to arrive. */
  readonly requestTimeoutMs: number;
  /** How long a reply may wait while its reader takes none of it; then the stream is reset. */
  readonly stalledReplyTimeoutMs: number;
  /** The maximum duration of HTTP/1 headers, a whole HTTP/1 request, and an idle HTTP/1 connection. */
  readonly http1HeadersTimeoutMs: number;
  readonly http1RequestTimeoutMs: number;
  readonly http1IdleTimeoutMs: number;
  /**
   * The interval of PINGs on every HTTP/2 connection; one more is sent when its client is silent for a sweep. A PING
   * without an answer in time ends the connection.
   */
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
  /** The interval at which the timeouts above are checked: they may be up to this much late. */
  readonly sweepIntervalMs: number;
}

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

export const defaultTransportLimits: TransportLimits = Object.freeze({
  maxReceiveBytes: 2 * mebibyte,
  maxConnections: 10_000,
  maxReservedConnections: 64,
  maxConcurrentStreams: 50_000,
  maxTotalCalls: 200_000,
  maxHeaderPairs: 64,
  maxHeaderBytes: 16 * kibibyte,
  maxSettingsEntries: 32,
  maxInvalidFrames: 100,
  maxRejectedStreams: 100,
  maxPingsPerSweep: 50_000,
  maxSettingsPerSweep: 100,
  maxResetsPerSweep: 10_000,
  maxWindowUpdatesPerSweep: 1_000_000,
  maxIneffectiveFramesPerSweep: 50_000,
  maxUnreadControlFrames: 4096,
  maxContinuations: 16,
  maxHeaderBlockBytes: 64 * kibibyte,
  maxOutputBytes: 256 * kibibyte,
  keepAliveMinTimeMs: 5000,
  maxStreamStartsPerTurn: 128,
  maxTotalStreamStartsPerTurn: 1024,
  maxReadBytesPerTurn: 256 * kibibyte,
  readSliceMs: 8,
  streamWindowBytes: 256 * kibibyte,
  connectionWindowBytes: 4 * mebibyte,
  maxStreamBufferedBytes: 32 * kibibyte,
  maxConnectionRequestBytes: 64 * mebibyte,
  maxConnectionReplyBytes: 64 * mebibyte,
  maxConnectionResultBytes: 32 * mebibyte,
  maxConnectionStreamBytes: 64 * mebibyte,
  maxTotalRequestBytes: 512 * mebibyte,
  maxTotalReplyBytes: 512 * mebibyte,
  replyPatienceMs: 1000,
  maxTotalResultBytes: 256 * mebibyte,
  maxTotalStreamBytes: 512 * mebibyte,
  maxWaitingHttpRequests: 100,
  maxPipelinedRequests: 32,
  handshakeTimeoutMs: 10_000,
  prefaceTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  stalledReplyTimeoutMs: 60_000,
  http1HeadersTimeoutMs: 10_000,
  http1RequestTimeoutMs: 30_000,
  http1IdleTimeoutMs: 60_000,
  keepAliveIntervalMs: 120_000,
  keepAliveTimeoutMs: 20_000,
  sweepIntervalMs: 5000,
});
