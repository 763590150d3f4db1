import type { StateMachine } from '@tenure/core';
import { chainHash } from '../engines/chain-hash.ts';
import { EngineError } from '../engines/engine-error.ts';
import { seedFolder } from '../engines/file/seeded-folder.ts';
import type { Position, SharedLogEngine } from '../engines/log-engine.ts';
import { openSharedEngine } from '../engines/shared-engine.ts';
import { randomId } from '../random/random-id.ts';
import { systemRandom } from '../random/system-random.ts';
import { yieldToEventLoop } from '../time/yield-to-event-loop.ts';
import { sleep } from '../time/sleep.ts';
import { systemClock } from '../time/system-clock.ts';
import { placeText, type LogPlace } from './log-place.ts';
import { readSavedSnapshot } from './saved-snapshot.ts';
import { type SnapshotStatus, snapshotStatus } from './snapshot-status.ts';

/** How often, and for how long, the outcome is checked after the connection broke. */
const lookIntervalMs = 250;
const maxLooks = 40;

/**
 * Creates a new log from a snapshot file, in a data folder or on an engine that servers share. It is the log of a new
 * cluster, without members, which continues from the revision, the leases and the cluster time of the old one; see the
 * decision record 010. Verifies the file first. Resolves with a summary of the restored state; `clusterId` is the new
 * one. Rejects as snapshotStatus does, and with EngineError when the location cannot be used or holds a log already.
 */
export async function restoreSnapshot(path: string, place: LogPlace): Promise<SnapshotStatus> {
  const status = await snapshotStatus(path);
  const clusterId = randomId(systemRandom);
  const secret = systemRandom.bytes(32).toString('base64url');
  const { head, state } = await readSavedSnapshot(path, ({ isFinal }) => ({
    clusterId,
    secret,
    isFinal: isFinal === true,
  }));
  const { index, hash } = head.position;
  // The hash depends on the cluster id, so that a server which has applied the former log up to here cannot continue in
  // this one.
  const position = { index, hash: chainHash(hash, Buffer.from(`restored as cluster ${clusterId.toString(16)}`)) };
  if (place.kind === 'folder') await seedFolder(place.dataDir, position, chunksOf(state), systemRandom);
  else await seedShared(place, position, state);
  return { ...status, clusterId: String(clusterId) };
}

async function* chunksOf(state: StateMachine): AsyncGenerator<Uint8Array> {
  const steps = state.snapshotForEngine();
  for (let step = steps.next(); step.done !== true; step = steps.next()) {
    yield step.value;
    await yieldToEventLoop(systemClock);
  }
}

async function seedShared(
  place: Extract<LogPlace, { kind: 'shared' }>,
  position: Position,
  state: StateMachine,
): Promise<void> {
  const engine = await openSharedEngine({ ...place, dedicated: false, onNotice: () => undefined });
  try {
    const tail = await engine.tail();
    if (tail.index > 0) throw inUse(place, tail.index);
    await engine.seed(position, chunksOf(state));
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (error.code === 'conflict') throw inUse(place, error.tail?.index ?? 0);
    const isOpen = error.code === 'unknown' || error.code === 'unavailable';
    if (!isOpen || !(await wasSeeded(engine, position))) throw error;
  } finally {
    await engine.close();
  }
}

/** Whether a seed whose connection broke has taken effect. */
async function wasSeeded(engine: SharedLogEngine, position: Position): Promise<boolean> {
  for (let look = 1; look <= maxLooks; look += 1) {
    try {
      return (await engine.tail()).hash === position.hash;
    } catch {
      await sleep(systemClock, lookIntervalMs);
    }
  }
  return false;
}

function inUse(place: Extract<LogPlace, { kind: 'shared' }>, index: number): EngineError {
  const what = `${placeText(place)} holds the log of a cluster already (up to entry ${index})`;
  const prefix = /^etcd:\/\/[^/]+(\/.*?)\/*$/.exec(place.url)?.[1] ?? '/tenure';
  const help = place.url.startsWith('etcd://')
    ? `give another prefix in the address, or, if nothing needs it any more: etcdctl del --prefix ${prefix}/`
    : `give another schema with --engine-schema, or, if nothing needs it any more: DROP SCHEMA ${place.schema} CASCADE`;
  return new EngineError('unusable', `${what}; ${help}`);
}
