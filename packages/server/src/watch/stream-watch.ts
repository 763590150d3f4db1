import type { WatchBatch, Watcher } from '@tenure/core';
import type { GrpcStatus } from '../transport/grpc-status.ts';

/** A stream of watches, as the scheduler calls it. */
export interface ScheduledStream {
  /** Events of one of its watches, which is not lagging. */
  deliver(batch: WatchBatch<StreamWatch>): void;
  /** One of its watches has fallen behind. */
  lag(watcher: StreamWatcher): void;
  /** What its watches have still to read begins here; undefined if none lags. */
  readonly oldestWanted: number | undefined;
  /** Whether it has watches that lag, and room to send what they read. */
  readonly canPull: boolean;
  /** Reads on for the next of them. */
  pullOne(): void;
  /** Everything is delivered: answers a request for progress. */
  tryProgress(): void;
  end(status: GrpcStatus): void;
}

/** One watch as its stream knows it: what the client called it, and how it wants its responses. */
export interface StreamWatch {
  readonly stream: ScheduledStream;
  readonly id: bigint;
  readonly prevKv: boolean;
  readonly fragment: boolean;
  /** From where the client asked for events; 0 for what is new. It is told of no revision before that. */
  readonly startRevision: number;
  /** No events have been sent since the last progress interval began. */
  quiet: boolean;
}

export type StreamWatcher = Watcher<StreamWatch>;
