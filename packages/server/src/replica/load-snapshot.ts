import { SnapshotReader, type StateMachine } from '@tenure/core';
import type { LogEngine, Position } from '../engines/log-engine.ts';
import { yieldToEventLoop } from '../time/yield-to-event-loop.ts';
import type { Clock } from '../time/clock.ts';

/** A state loaded from a snapshot, and its position in the log. */
export interface LoadedSnapshot {
  readonly state: StateMachine;
  readonly position: Position;
}

/**
 * Reads the newest snapshot in chunks, between which the event loop runs; undefined when there is none. Rejects with
 * the engine's error: `trimmed` or `unavailable` if a newer snapshot replaced this one during the read, so that the
 * caller may retry. An abort rejects with the signal's reason.
 */
export async function loadSnapshot(
  engine: LogEngine,
  clock: Clock,
  signal?: AbortSignal,
): Promise<LoadedSnapshot | undefined> {
  const snapshot = await engine.loadSnapshot();
  if (snapshot === undefined) return undefined;
  const { position, chunks } = snapshot;
  const reader = new SnapshotReader();
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    reader.push(chunk);
    await yieldToEventLoop(clock);
  }
  const state = reader.finish();
  if (state.appliedIndex !== position.index) {
    throw new Error(
      `the snapshot at index ${position.index} holds the state at index ${state.appliedIndex}: it is not of this log`,
    );
  }
  return { state, position };
}
