import { SnapshotReader, type StateMachine } from '@tenure/core';
import type { LogEngine, Position } from '../engines/log-engine.ts';
import { breathe } from '../time/breathe.ts';
import type { Clock } from '../time/clock.ts';

/** A state as a snapshot holds it, and the place in the log up to which it is that. */
export interface LoadedSnapshot {
  readonly state: StateMachine;
  readonly position: Position;
}

/**
 * Reads the newest snapshot, chunk by chunk, between which the event loop is free; undefined when there is none.
 * Rejects with what the engine says: `trimmed` or `unavailable` where a newer one has come in the place of the one that
 * was being read, so that it may be tried again. An abort rejects with the signal's reason.
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
    await breathe(clock);
  }
  const state = reader.finish();
  if (state.appliedIndex !== position.index) {
    throw new Error(
      `the snapshot at index ${position.index} holds the state at index ${state.appliedIndex}: it is not of this log`,
    );
  }
  return { state, position };
}
