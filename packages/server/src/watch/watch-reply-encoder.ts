import type { KvEvent } from '@tenure/core';
import {
  encodeWatchResponse,
  type ResponseHeaderPrefix,
  watchEventSize,
  type WatchResponseFields,
} from '@tenure/codec';
import type { StreamWatch } from './stream-watch.ts';

/** The watch id of a response that concerns no single watch. */
const noWatchId = -1n;
/** An upper bound for the size of a response without its events, in bytes. */
const responseOverheadBytes = 128;

const bare: WatchResponseFields = {
  created: false,
  canceled: false,
  compactRevision: 0,
  cancelReason: '',
  fragment: false,
  events: [],
  withPrevKv: false,
};
const created: WatchResponseFields = { ...bare, created: true };
const canceled: WatchResponseFields = { ...bare, canceled: true };

/**
 * Encodes the responses of the Watch service, framed. `revision` is the header's revision. In a response with events,
 * and in a progress response, it is a promise: every event of that watch up to and including it has been sent. (etcd's
 * header may name a later revision when a watch lags; a client that resumes from it then misses events.)
 */
export class WatchReplyEncoder {
  readonly #headerPrefix: ResponseHeaderPrefix;
  readonly #raftTerm: () => number;
  /** The size from which a response for a watch with `fragment` is split, in bytes. */
  readonly #fragmentBytes: number;

  constructor(headerPrefix: ResponseHeaderPrefix, raftTerm: () => number, fragmentBytes: number) {
    this.#headerPrefix = headerPrefix;
    this.#raftTerm = raftTerm;
    this.#fragmentBytes = fragmentBytes;
  }

  created(revision: number, watchId: bigint): Buffer {
    return this.#encode(revision, watchId, created);
  }

  /** A watch that was refused: created and cancelled in one response, without an id. */
  refused(revision: number, cancelReason: string): Buffer {
    return this.#encode(revision, noWatchId, { ...created, canceled: true, cancelReason });
  }

  canceled(revision: number, watchId: bigint): Buffer {
    return this.#encode(revision, watchId, canceled);
  }

  /** A watch that the server ends. */
  ended(revision: number, watchId: bigint, cancelReason: string): Buffer {
    return this.#encode(revision, watchId, { ...canceled, cancelReason });
  }

  compacted(revision: number, watchId: bigint, compactRevision: number): Buffer {
    return this.#encode(revision, watchId, { ...canceled, compactRevision });
  }

  /** Progress of one watch. */
  progress(revision: number, watchId: bigint): Buffer {
    return this.#encode(revision, watchId, bare);
  }

  /** Progress of all watches of a stream. */
  progressOfAll(revision: number): Buffer {
    return this.#encode(revision, noWatchId, bare);
  }

  /** One response, or its fragments, which must be sent directly after each other. */
  events(revision: number, watch: StreamWatch, events: readonly KvEvent[]): Buffer[] {
    const fields = { ...bare, withPrevKv: watch.prevKv, events };
    if (!watch.fragment) return [this.#encode(revision, watch.id, fields)];
    const replies: Buffer[] = [];
    for (let from = 0; from < events.length;) {
      const to = this.#fragmentEnd(watch, events, from);
      const part = { ...fields, events: events.slice(from, to), fragment: to < events.length };
      replies.push(this.#encode(revision, watch.id, part));
      from = to;
    }
    return replies;
  }

  /** Each fragment has at least one event, of any size. */
  #fragmentEnd(watch: StreamWatch, events: readonly KvEvent[], from: number): number {
    let bytes = responseOverheadBytes;
    let to = from;
    for (; to < events.length; to += 1) {
      bytes += watchEventSize(events[to]!, watch.prevKv);
      if (to > from && bytes >= this.#fragmentBytes) break;
    }
    return to;
  }

  #encode(revision: number, watchId: bigint, fields: WatchResponseFields): Buffer {
    const header = { prefix: this.#headerPrefix, revision, raftTerm: this.#raftTerm() };
    return encodeWatchResponse(header, watchId, fields);
  }
}
