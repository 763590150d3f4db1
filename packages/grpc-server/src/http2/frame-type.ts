/** Types of frames (RFC 9113, section 6). */
export const frameType = Object.freeze({
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
});

export const flag = Object.freeze({ endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 });

/** Error codes of RST_STREAM and GOAWAY (RFC 9113, section 7). */
export const errorCode = Object.freeze({
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
});

/** Settings (RFC 9113, section 6.5.2). */
export const setting = Object.freeze({
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
});

export const frameHeadBytes = 9;
/** The largest payload of a frame, in both directions: the default, which every peer accepts. */
export const maxFrameBytes = 16_384;
/** Windows before any SETTINGS or WINDOW_UPDATE. */
export const defaultWindowBytes = 65_535;
export const maxWindowBytes = 2 ** 31 - 1;
export const maxStreamId = 2 ** 31 - 1;

/** What a client sends first (RFC 9113, section 3.4); a SETTINGS frame follows it. */
export const clientPreface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
