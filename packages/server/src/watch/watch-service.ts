import type { History } from '@tenure/core';
import type { ResponseHeaderPrefix } from '@tenure/codec';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import type { GrpcStatus } from '../transport/grpc-status.ts';
import type { DuplexCall } from '../transport/transport.ts';
import { defaultWatchLimits, type WatchLimits } from './watch-limits.ts';
import { WatchReplyEncoder } from './watch-reply-encoder.ts';
import { WatchScheduler } from './watch-scheduler.ts';
import { WatchStream } from './watch-stream.ts';

export interface WatchServiceOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Live: it is asked anew for each step. */
  readonly history: History;
  /** The ids of cluster and member, for the headers of responses. */
  readonly headerPrefix: ResponseHeaderPrefix;
  /** The term for the headers of responses. */
  readonly raftTerm: () => number;
  /** The largest request a client may send, in bytes; it sets the size of fragments too. */
  readonly maxRequestBytes: number;
  /**
   * Between two progress notifications of a quiet watch, plus up to a tenth of it; below 100 ms it is raised to
   * that.
   */
  readonly progressNotifyIntervalMs: number;
  readonly limits?: Partial<WatchLimits>;
}

export interface WatchCounts {
  readonly streams: number;
  readonly watchers: number;
  /** Those of the watchers that are still reading the history. */
  readonly slowWatchers: number;
  /** Since the service was made. */
  readonly eventsSent: number;
}

/** As etcd has it: shorter intervals would be mostly notifications. */
const minProgressNotifyIntervalMs = 100;

/**
 * etcd's Watch service, on whatever carries a bidirectional call.
 *
 * The owner calls `revisionAdvanced` after each entry that it has applied. Of compaction nothing need be told: a
 * watch finds out when it reads. Event responses leave within that call as far as a slice of time allows, the rest
 * in later turns.
 */
export class WatchService {
  readonly #scheduler: WatchScheduler;
  #closedWith: GrpcStatus | undefined;

  constructor(options: WatchServiceOptions) {
    const { clock, random, history, headerPrefix, raftTerm, maxRequestBytes } = options;
    const limits = { ...defaultWatchLimits, ...options.limits };
    this.#scheduler = new WatchScheduler({
      clock,
      random,
      history,
      encoder: new WatchReplyEncoder(headerPrefix, raftTerm, maxRequestBytes + limits.fragmentOverheadBytes),
      limits,
      progressNotifyIntervalMs: Math.max(options.progressNotifyIntervalMs, minProgressNotifyIntervalMs),
    });
  }

  get counts(): WatchCounts {
    const { hub, streams, eventsSent } = this.#scheduler;
    return { streams: streams.size, watchers: hub.watcherCount, slowWatchers: hub.laggingCount, eventsSent };
  }

  /** The oldest revision that a watch has still to read; undefined while all have read everything. */
  get oldestWanted(): number | undefined {
    const wanted = [...this.#scheduler.streams].flatMap(({ oldestWanted }) => oldestWanted ?? []);
    return wanted.length === 0 ? undefined : wanted.reduce((oldest, revision) => Math.min(oldest, revision));
  }

  handle(call: DuplexCall): void {
    if (this.#closedWith !== undefined) {
      call.end(this.#closedWith);
      return;
    }
    this.#scheduler.streams.add(new WatchStream(call, this.#scheduler));
  }

  /** `beganMs`: when the turn's work began that this is part of by the clock, such as applying an entry. */
  revisionAdvanced(beganMs: number = this.#scheduler.clock.monotonicMs()): void {
    this.#scheduler.advance(beganMs);
  }

  /** Ends every stream with this status, and each that comes later. */
  close(status: GrpcStatus): void {
    this.#closedWith = status;
    for (const stream of this.#scheduler.streams) stream.end(status);
    this.#scheduler.stop();
  }
}
