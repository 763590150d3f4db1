import type { WatchBatch, Watcher } from '@tenure/core';
import type { GrpcStatus } from '@tenure/grpc-server';

/** A stream of watches, as the scheduler calls it. */
export interface ScheduledStream {
  /** Events of one of its watches, which is not lagging. */
  deliver(batch: WatchBatch<StreamWatch>): void;
  /** One of its watches has fallen behind. */
  lag(watcher: StreamWatcher): void;
  /** Its open watches. */
  readonly watchers: Iterable<StreamWatcher>;
  /** Ends one of its watches, whose user may not read all its keys any more. */
  deny(watcher: StreamWatcher): void;
  /** The oldest revision that its watches have yet to read; undefined if none lags. */
  readonly oldestWanted: number | undefined;
  /** Whether it has lagging watches, and room to send their events. */
  readonly canPull: boolean;
  /** Reads the next batch for one of them. */
  pullOne(): void;
  /** Everything is delivered: answers a progress request. */
  tryProgress(): void;
  end(status: GrpcStatus): void;
}

/** One watch of its stream: the id chosen by the client, and the options of its responses. */
export interface StreamWatch {
  readonly stream: ScheduledStream;
  readonly id: bigint;
  readonly prevKv: boolean;
  readonly fragment: boolean;
  /** The client's start revision; 0 for new events only. No response names an earlier revision. */
  readonly startRevision: number;
  /** By whose permissions it goes on; '' for a client without an identity. */
  readonly user: string;
  /** The version of the auth data by which its permission was checked last. */
  checkedBy: number;
  /** No events have been sent since the last progress interval began. */
  quiet: boolean;
}

export type StreamWatcher = Watcher<StreamWatch>;
