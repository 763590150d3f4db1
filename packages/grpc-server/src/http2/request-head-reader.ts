import type { IncomingHttpHeaders } from 'node:http2';
import { HpackDecoder } from '../hpack/hpack-decoder.ts';
import { RequestHeaders } from './request-headers.ts';
import type { SessionLimits } from './session-limits.ts';

/** The dynamic table that a client may use for its headers: the default, so no SETTINGS are waited for. */
const tableBytes = 4096;
/** Blocks whose meaning is remembered, and their largest size. */
const maxKnownBlocks = 8;
const maxKnownBytes = 512;

/** The headers of a request, or of its trailers. One object may serve many requests: nothing in it may be changed. */
export interface ReceivedHead {
  readonly headers: IncomingHttpHeaders;
  /** Which rule of HTTP/2 was broken: the stream is reset. */
  readonly fault: string | undefined;
  /** The headers are more than is allowed. */
  readonly isTooLarge: boolean;
  /** By its content-length; -1 without one. */
  readonly bodyBytes: number;
  /** What the server above has found out from these headers: the same block of headers means the same. */
  meaning: unknown;
}

interface KnownBlock {
  readonly bytes: Buffer;
  readonly head: ReceivedHead;
}

/**
 * Reads the header blocks of one connection. A client that makes the same calls sends the same few bytes again and
 * again, so the meaning of the last blocks is remembered for as long as the dynamic table stays as it is.
 */
export class RequestHeadReader {
  readonly #decoder: HpackDecoder;
  #known: KnownBlock[] = [];
  #knownGeneration = -1;

  constructor(limits: SessionLimits) {
    this.#decoder = new HpackDecoder({
      maxTableBytes: tableBytes,
      maxHeaderListBytes: limits.maxHeaderBytes,
      maxHeaderPairs: limits.maxHeaderPairs,
    });
  }

  /** Throws HpackError, after which the connection cannot go on. */
  request(bytes: Buffer, start: number, end: number): ReceivedHead {
    const generation = this.#decoder.generation;
    if (generation !== this.#knownGeneration) {
      this.#known = [];
      this.#knownGeneration = generation;
    }
    for (const { bytes: block, head } of this.#known) if (isSame(block, bytes, start, end)) return head;
    const head = this.#decode(bytes, start, end, false);
    const isStable = this.#decoder.generation === generation && end - start <= maxKnownBytes;
    if (isStable) {
      if (this.#known.length === maxKnownBlocks) this.#known.pop();
      this.#known.unshift({ bytes: Buffer.from(bytes.subarray(start, end)), head });
    }
    return head;
  }

  trailers(bytes: Buffer, start: number, end: number): ReceivedHead {
    return this.#decode(bytes, start, end, true);
  }

  #decode(bytes: Buffer, start: number, end: number, areTrailers: boolean): ReceivedHead {
    const read = new RequestHeaders(areTrailers);
    const isWhole = this.#decoder.decode(bytes, start, end, (name, value) => read.add(name, value));
    read.finish();
    const bodyBytes = read.contentLength();
    const fault = bodyBytes === undefined ? 'a content-length that is no number' : read.fault;
    return {
      headers: Object.freeze(read.headers),
      fault: isWhole ? fault : undefined,
      isTooLarge: !isWhole,
      bodyBytes: bodyBytes ?? -1,
      meaning: undefined,
    };
  }
}

function isSame(block: Buffer, bytes: Buffer, start: number, end: number): boolean {
  const { length } = block;
  if (length !== end - start) return false;
  // Short blocks are compared here: a call of Buffer.compare costs more.
  if (length > 48) return block.compare(bytes, start, end) === 0;
  for (let index = 0; index < length; index++) if (block[index] !== bytes[start + index]) return false;
  return true;
}
