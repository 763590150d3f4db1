/**
 * Every limit that the transport sets for its clients, with a name and in one place. A well-behaved client reaches none
 * of them; a hostile or broken one reaches a limit instead of an unbounded queue.
 */
export interface TransportLimits {
  /** Largest message that is received, in bytes of protobuf, after decompression too. Beyond: ResourceExhausted. */
  readonly maxReceiveBytes: number;
  /** Sockets open at once, HTTP/1 and HTTP/2 together. One more is closed as it arrives. */
  readonly maxConnections: number;
  /** Sockets beyond these that are reserved for other servers: see PeerReserve. */
  readonly maxReservedConnections: number;
  /**
   * Open streams per connection. A watcher or a stream of renewals holds one each, so a proxy that carries many of them
   * over one connection must not reach the limit. The limit protects memory: an open stream takes 6 to 8 KiB.
   */
  readonly maxConcurrentStreams: number;
  /** Open calls on all connections together. Beyond, the connection that holds most of them is closed. */
  readonly maxTotalCalls: number;
  /**
   * The memory of nghttp2 for one connection: header blocks, streams, frames that wait for the socket. In mebibytes.
   */
  readonly maxSessionMemoryMiB: number;
  /** Headers in one request, pseudo-headers included. */
  readonly maxHeaderPairs: number;
  /** Bytes of names and values in one request's headers, plus HTTP/2's 32 per pair. Also the header limit of HTTP/1. */
  readonly maxHeaderBytes: number;
  /** Entries in one SETTINGS frame. */
  readonly maxSettingsEntries: number;
  /** Invalid frames, and streams refused, after which the connection is closed. */
  readonly maxInvalidFrames: number;
  readonly maxRejectedStreams: number;
  /**
   * PING and SETTINGS frames of one client within a sweep (sweepIntervalMs) after which its connection is closed. Go's
   * client measures bandwidth with a PING for each round trip with data: thousands per second are legitimate on
   * loopback.
   */
  readonly maxPingsPerSweep: number;
  readonly maxSettingsPerSweep: number;
  /**
   * Calls reset by a client within a sweep (rapid reset) after which its connection is closed. nghttp2 has a limit of
   * its own, a burst and a rate, after which it sends GOAWAY and ignores further streams of the client; where Node does
   * not let it be set, it is 1000 at once and 33 a second.
   */
  readonly maxResetsPerSweep: number;
  readonly streamResetBurst: number;
  readonly streamResetsPerSecond: number;
  /**
   * Streams of one connection, and of all together, whose calls begin in one turn of the event loop. The rest wait for
   * the next turns, round-robin between connections.
   */
  readonly maxStreamStartsPerTurn: number;
  readonly maxTotalStreamStartsPerTurn: number;
  /** Bytes that a client may send ahead on one stream, and on one connection, before the server has read them. */
  readonly streamWindowBytes: number;
  readonly connectionWindowBytes: number;
  /** Unsent bytes of a bidirectional stream's messages from which on `send` returns false. */
  readonly maxStreamBufferedBytes: number;
  /**
   * Bytes of unfinished requests, and of the windows of paused streams, for one connection. Beyond: ResourceExhausted
   * for the call that exceeds it.
   */
  readonly maxConnectionRequestBytes: number;
  /** Bytes of unary replies that wait for one connection's reader. Beyond: ResourceExhausted for its further calls. */
  readonly maxConnectionReplyBytes: number;
  /**
   * Memory of one connection's large replies that wait to be built: the keys that they refer to. Beyond:
   * ResourceExhausted for its further ones.
   */
  readonly maxConnectionResultBytes: number;
  /** Bytes of all bidirectional streams of one connection. Beyond, each of them is left node's minimum buffer. */
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
