/** What a peer of one HTTP/2 connection may use. */
export interface SessionLimits {
  /** Streams that the client may have open at once. */
  readonly maxConcurrentStreams: number;
  /** Headers in one request, pseudo-headers included. */
  readonly maxHeaderPairs: number;
  /** Bytes of names and values in one request's headers, plus 32 per pair. Beyond, the stream is reset. */
  readonly maxHeaderBytes: number;
  /** Bytes of one header block before it is decoded. Beyond, the connection is closed. */
  readonly maxHeaderBlockBytes: number;
  /** CONTINUATION frames of one header block. */
  readonly maxContinuations: number;
  /** Entries in one SETTINGS frame. */
  readonly maxSettingsEntries: number;
  /** Errors of single streams, each answered with RST_STREAM (CVE-2025-8671), of one client within a sweep. */
  readonly maxInvalidFrames: number;
  /** Streams refused for their number, of one client within a sweep. */
  readonly maxRejectedStreams: number;
  /** Frames of one client within a sweep after which its connection is closed. */
  readonly maxPingsPerSweep: number;
  readonly maxSettingsPerSweep: number;
  readonly maxWindowUpdatesPerSweep: number;
  /** Streams that the client resets within a sweep (CVE-2023-44487). */
  readonly maxResetsPerSweep: number;
  /**
   * PRIORITY, unknown frames, empty DATA, acknowledgements, frames for closed streams, and new streams on a connection
   * that is ending, within a sweep.
   */
  readonly maxIneffectiveFramesPerSweep: number;
  /** Answers to PING, SETTINGS and streams (RST_STREAM) that wait for a socket which its client does not read. */
  readonly maxUnreadControlFrames: number;
  /** The shortest interval of PINGs that a client may send to keep its connection alive; as etcd's flag. */
  readonly keepAliveMinTimeMs: number;
  /** Bytes that a client may send ahead on one stream, and on one connection, before they are read. */
  readonly streamWindowBytes: number;
  readonly connectionWindowBytes: number;
  /** Frames that are written for one connection before its socket has taken the previous ones. */
  readonly maxOutputBytes: number;
}

/** The count of frames since the last sweep, by their kinds. */
export class FrameCounts {
  pings = 0;
  settings = 0;
  windowUpdates = 0;
  resets = 0;
  ineffective = 0;
  invalid = 0;
  rejected = 0;

  /** Which limit has been exceeded. */
  fault(limits: SessionLimits): string | undefined {
    if (this.pings > limits.maxPingsPerSweep) return 'a client floods its connection with PING frames';
    if (this.settings > limits.maxSettingsPerSweep) return 'a client floods its connection with SETTINGS frames';
    if (this.resets > limits.maxResetsPerSweep) return 'a client resets too many of its calls';
    if (this.windowUpdates > limits.maxWindowUpdatesPerSweep) {
      return 'a client floods its connection with WINDOW_UPDATE frames';
    }
    if (this.ineffective > limits.maxIneffectiveFramesPerSweep) {
      return 'a client floods its connection with frames that have no effect';
    }
    return undefined;
  }

  startAgain(): void {
    this.pings = 0;
    this.settings = 0;
    this.windowUpdates = 0;
    this.resets = 0;
    this.ineffective = 0;
    this.invalid = 0;
    this.rejected = 0;
  }
}
