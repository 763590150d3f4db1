import type { History } from '@tenure/core';
import type { ResponseHeaderPrefix } from '@tenure/codec';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import type { GrpcStatus } from '@tenure/grpc-server';
import type { DuplexCall } from '../transport/transport.ts';
import { defaultWatchLimits, type WatchLimits } from './watch-limits.ts';
import type { WatchAccess } from './watch-permissions.ts';
import { WatchReplyEncoder } from './watch-reply-encoder.ts';
import { WatchScheduler } from './watch-scheduler.ts';
import { WatchStream } from './watch-stream.ts';

export interface WatchServiceOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** The current state: it is read again for each step. */
  readonly history: History;
  /** Who may read what in that state. */
  readonly access: WatchAccess;
  /** The ids of cluster and member, for the headers of responses. */
  readonly headerPrefix: ResponseHeaderPrefix;
  /** The term for the headers of responses. */
  readonly raftTerm: () => number;
  /** The largest request a client may send, in bytes; it sets the size of fragments too. */
  readonly maxRequestBytes: number;
  /** The interval between two progress notifications of an idle watch, plus up to a tenth of it; at least 100 ms. */
  readonly progressNotifyIntervalMs: number;
  readonly limits?: Partial<WatchLimits>;
}

export interface WatchCounts {
  readonly streams: number;
  readonly watchers: number;
  /** The watchers that are still reading the history. */
  readonly slowWatchers: number;
  /** Since the service was created. */
  readonly eventsSent: number;
}

/** As in etcd: shorter intervals would be mostly notifications. */
const minProgressNotifyIntervalMs = 100;

/**
 * etcd's Watch service, on any transport with bidirectional calls.
 *
 * The owner calls `revisionAdvanced` after each applied entry with a new revision, and `recheckPermissions` after each
 * other one. Compactions need not be reported: a watch detects one
 * when it reads. Event responses are sent within that call as far as a time slice allows, the rest in later turns.
 */
export class WatchService {
  readonly #scheduler: WatchScheduler;
  #closedWith: GrpcStatus | undefined;

  constructor(options: WatchServiceOptions) {
    const { clock, random, history, access, headerPrefix, raftTerm, maxRequestBytes } = options;
    const limits = { ...defaultWatchLimits, ...options.limits };
    this.#scheduler = new WatchScheduler({
      clock,
      random,
      history,
      access,
      encoder: new WatchReplyEncoder(headerPrefix, raftTerm, maxRequestBytes + limits.fragmentOverheadBytes),
      limits,
      progressNotifyIntervalMs: Math.max(options.progressNotifyIntervalMs, minProgressNotifyIntervalMs),
    });
  }

  get counts(): WatchCounts {
    const { hub, streams, eventsSent } = this.#scheduler;
    return { streams: streams.size, watchers: hub.watcherCount, slowWatchers: hub.laggingCount, eventsSent };
  }

  /** The oldest revision that a watch has yet to read; undefined while all have read everything. */
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

  /** `beganMs`: when the current unit of work began, such as applying an entry. */
  revisionAdvanced(beganMs: number = this.#scheduler.clock.monotonicMs()): void {
    this.#scheduler.advance(beganMs);
  }

  /** Ends the watches that may not go on, once users, roles or permissions have changed. */
  recheckPermissions(beganMs: number = this.#scheduler.clock.monotonicMs()): void {
    this.#scheduler.permissions.recheck(beganMs);
  }

  /** Ends every stream with this status, and each later one. */
  close(status: GrpcStatus): void {
    this.#closedWith = status;
    for (const stream of this.#scheduler.streams) stream.end(status);
    this.#scheduler.stop();
  }
}
