import type { Watcher } from '@tenure/core';
import type { WatchStream } from './watch-stream.ts';

/** One watch as its stream knows it: what the client called it, and how it wants its responses. */
export interface StreamWatch {
  readonly stream: WatchStream;
  readonly id: bigint;
  readonly prevKv: boolean;
  readonly fragment: boolean;
  /** From where the client asked for events; 0 for what is new. It is told of no revision before that. */
  readonly startRevision: number;
  /** No events have been sent since the last progress interval began. */
  quiet: boolean;
}

export type StreamWatcher = Watcher<StreamWatch>;
