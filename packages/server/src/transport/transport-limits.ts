/**
 * Every bound that the transport puts on its clients, named and in one place. None of them can be reached by a client
 * that behaves; each of them is what a hostile or broken one meets instead of an unbounded queue.
 */
export interface TransportLimits {
  /** Largest message that is received, in bytes of protobuf, after decompression too. Beyond: ResourceExhausted. */
  readonly maxReceiveBytes: number;
  /** Sockets open at once, HTTP/1 and HTTP/2 together. One more is closed as it arrives. */
  readonly maxConnections: number;
  /** Sockets beyond these that are taken for other servers: see PeerReserve. */
  readonly maxReservedConnections: number;
  /**
   * Streams open at once on one connection. A watcher or a keeper of leases holds one each, so a proxy that carries
   * many of them over one connection must not meet the limit. What it protects is memory: an open stream takes 6 to 8
   * KiB.
   */
  readonly maxConcurrentStreams: number;
  /** Calls open at once on all connections together. Beyond, the connection that holds most of them is closed. */
  readonly maxTotalCalls: number;
  /**
   * What nghttp2 may hold for one connection: header blocks, streams, frames that wait for the socket. In mebibytes.
   */
  readonly maxSessionMemoryMiB: number;
  /** Headers in one request, pseudo-headers included. */
  readonly maxHeaderPairs: number;
  /** Bytes of names and values in one request's headers, with HTTP/2's 32 a pair. HTTP/1's header limit as well. */
  readonly maxHeaderBytes: number;
  /** Entries in one SETTINGS frame. */
  readonly maxSettingsEntries: number;
  /** Invalid frames, and streams refused, after which the connection is closed. */
  readonly maxInvalidFrames: number;
  readonly maxRejectedStreams: number;
  /**
   * PING and SETTINGS frames of one client within a sweep (sweepIntervalMs) after which its connection is closed.
   * Go's client measures bandwidth with a PING for each round trip on which data came: thousands a second are honest
   * on loopback.
   */
  readonly maxPingsPerSweep: number;
  readonly maxSettingsPerSweep: number;
  /**
   * Calls that a client resets within a sweep (rapid reset) after which its connection is closed. Beside it stands a
   * limit of nghttp2's own, a burst and a rate, after which it sends GOAWAY and ignores what the client still opens;
   * where Node does not let it be set, it is 1000 at once and 33 a second.
   */
  readonly maxResetsPerSweep: number;
  readonly streamResetBurst: number;
  readonly streamResetsPerSecond: number;
  /**
   * Streams of one connection, and of all together, whose calls begin in one turn of the event loop. The rest wait for
   * the next turns, connections in turn.
   */
  readonly maxStreamStartsPerTurn: number;
  readonly maxTotalStreamStartsPerTurn: number;
  /** Bytes that a client may send ahead on one stream, and on one connection, before the server has read them. */
  readonly streamWindowBytes: number;
  readonly connectionWindowBytes: number;
  /** Bytes of a bidirectional stream's messages that wait for its reader; `send` says false from here on. */
  readonly maxStreamBufferedBytes: number;
  /**
   * Bytes of unfinished requests, and of what paused streams may hold, for one connection. Beyond: ResourceExhausted
   * for the call that asks for more.
   */
  readonly maxConnectionRequestBytes: number;
  /** Bytes of unary replies that wait for one connection's reader. Beyond: ResourceExhausted for its further calls. */
  readonly maxConnectionReplyBytes: number;
  /**
   * Bytes of what large replies of one connection hold that wait to be built: which keys they will be made of. Beyond:
   * ResourceExhausted for its further ones.
   */
  readonly maxConnectionResultBytes: number;
  /**
   * Bytes of all bidirectional streams of one connection. Beyond, each of them is left only what node buffers at
   * least.
   */
  readonly maxConnectionStreamBytes: number;
  /** The same for all connections together. Beyond, the connection that holds most of it is closed. */
  readonly maxTotalRequestBytes: number;
  /**
   * A large reply is not built before there is room for it in seven eighths of this, and one that is larger is
   * ResourceExhausted. When the
   * first of those that wait has waited for as long as `replyPatienceMs` and none was built meanwhile, the connection
   * that holds most is closed.
   */
  readonly maxTotalReplyBytes: number;
  readonly replyPatienceMs: number;
  readonly maxTotalResultBytes: number;
  readonly maxTotalStreamBytes: number;
  /** HTTP requests of one connection that wait to be answered. Beyond: 503 over HTTP/2; HTTP/1's connection ends. */
  readonly maxWaitingHttpRequests: number;
  readonly maxPipelinedRequests: number;
  /** How long a connection may take to say which protocol it speaks. */
  readonly prefaceTimeoutMs: number;
  /** How long the message of a unary or server-streaming call may take to arrive. */
  readonly requestTimeoutMs: number;
  /** How long a reply may wait without its reader taking any of it; then the stream is reset. */
  readonly stalledReplyTimeoutMs: number;
  /** How long HTTP/1 headers, a whole HTTP/1 request, and an idle HTTP/1 connection may last. */
  readonly http1HeadersTimeoutMs: number;
  readonly http1RequestTimeoutMs: number;
  readonly http1IdleTimeoutMs: number;
  /**
   * A PING goes out this often on every HTTP/2 connection, and once when its client falls silent for a sweep; one
   * that is not answered in time ends the connection.
   */
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
  /** How often the bounds in time above are looked at: they are met up to this much late. */
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
  maxSessionMemoryMiB: 64,
  maxHeaderPairs: 64,
  maxHeaderBytes: 16 * kibibyte,
  maxSettingsEntries: 32,
  maxInvalidFrames: 100,
  maxRejectedStreams: 100,
  maxPingsPerSweep: 50_000,
  maxSettingsPerSweep: 500,
  maxResetsPerSweep: 10_000,
  streamResetBurst: 10_000,
  streamResetsPerSecond: 1000,
  maxStreamStartsPerTurn: 128,
  maxTotalStreamStartsPerTurn: 1024,
  streamWindowBytes: 256 * kibibyte,
  connectionWindowBytes: 4 * mebibyte,
  maxStreamBufferedBytes: mebibyte,
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
