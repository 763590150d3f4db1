import { EngineError } from '../engines/engine-error.ts';
import type { LogEngine } from '../engines/log-engine.ts';
import { decodeCommand } from '../replica/command-codec.ts';
import { recover } from '../replica/recovery.ts';
import { writeSnapshotFile } from '../replica/snapshot-file.ts';
import { yieldToEventLoop } from '../time/yield-to-event-loop.ts';
import { sleep } from '../time/sleep.ts';
import { systemClock } from '../time/system-clock.ts';
import { tenureVersion } from '../version.ts';
import { openExistingLog, placeText, type LogPlace } from './log-place.ts';

/** A log that does not grow for this long has no leader: a leader appends at least every 200 ms by default. */
const quietMs = 1_000;

/**
 * The bytes of a snapshot file of a log without a running server, with every acknowledged write. Rejects with
 * EngineError: `locked` while a server runs on a data folder, `conflict` when one appends to a shared log, before the
 * last byte is returned.
 */
export async function* snapshotOfLog(place: LogPlace): AsyncGenerator<Uint8Array> {
  const engine = await openExistingLog(place);
  try {
    const { state, position } = await recover(engine, decodeCommand, systemClock);
    if (state.clusterId === 0n) throw new EngineError('unusable', `${placeText(place)} holds no cluster yet`);
    if (place.kind === 'shared') await sleep(systemClock, quietMs);
    const { clusterId, currentRevision: revision } = state;
    const head = { format: 1, position, revision, clusterId: String(clusterId), tenureVersion, isFinal: true } as const;
    const steps = state.snapshot();
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (let step = steps.next(); step.done !== true; step = steps.next()) {
        yield step.value;
        await yieldToEventLoop(systemClock);
      }
      await checkQuiet(engine, position.index);
    }
    yield* writeSnapshotFile(head, chunks());
  } finally {
    await engine.close();
  }
}

async function checkQuiet(engine: LogEngine, index: number): Promise<void> {
  const tail = await engine.tail();
  if (tail.index === index) return;
  const what = `servers append to this log: it has grown from entry ${index} to ${tail.index}`;
  throw new EngineError('conflict', `${what}; stop them all first, or save through one that runs (--endpoints)`, {
    tail,
  });
}
