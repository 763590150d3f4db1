import { type Command, rootName } from '@tenure/core';
import { ScryptHasher } from '../auth/scrypt-hasher.ts';
import { EngineError } from '../engines/engine-error.ts';
import type { LogEngine, Position } from '../engines/log-engine.ts';
import { decodeCommand, encodeCommand } from '../replica/command-codec.ts';
import { encodeEntry } from '../replica/entry-codec.ts';
import { systemRandom } from '../random/system-random.ts';
import { recover } from '../replica/recovery.ts';
import { sleep } from '../time/sleep.ts';
import { systemClock } from '../time/system-clock.ts';
import { type LogPlace, openExistingLog, placeText } from './log-place.ts';

/**
 * A leader appends a heartbeat every `--heartbeat-interval`, 200 ms by default, so a log that stands still for this
 * long has no leader.
 */
const quietMs = 3_000;

export interface RecoveredRoot {
  /** Whether the user root did not exist. */
  readonly isNew: boolean;
  /** Whether authentication is enabled; this is not changed. */
  readonly enabled: boolean;
}

/**
 * Sets the password of the user root, and gives root the role root, in a log that no server uses: for the operator who
 * holds the log and has lost the password. An operator who can write the log could do so in any case. Authentication
 * stays enabled, so that there is no moment in which every client may do all. Earlier tokens of root are invalid.
 *
 * Rejects with EngineError: `unusable` when a server uses the log. A rejection with `unknown` leaves it open whether
 * the password was set; to do it again is safe.
 */
export async function recoverRoot(place: LogPlace, password: string): Promise<RecoveredRoot> {
  const passwordHash = await hashOf(password);
  const engine = await openExistingLog(place);
  try {
    const { state, position } = await recover(engine, decodeCommand, systemClock);
    if (engine.isShared) await assertUnused(engine, position, place);
    const isNew = !state.auth.users.has(rootName);
    const epoch = state.epoch + 1;
    // Only the leader of an epoch may write. This one acts for no lease, so the next server need not wait for its end.
    const claim: Command = { kind: 'claim', epoch, leader: 'recover-root', leaderLeaseMs: 0 };
    const change: Command = { kind: 'auth', change: { kind: 'recoverRoot', passwordHash } };
    const headers = { epoch, timeMs: state.clusterTimeMs };
    const entries = [claim, change].map((command) => encodeEntry(headers, [encodeCommand(command)]));
    await engine.append(entries, position);
    return { isNew, enabled: state.auth.enabled };
  } finally {
    await engine.close();
  }
}

async function assertUnused(engine: LogEngine, { index }: Position, place: LogPlace): Promise<void> {
  await sleep(systemClock, quietMs);
  const tail = await engine.tail();
  if (tail.index === index) return;
  throw new EngineError('unusable', `${placeText(place)} is used by a server: stop all servers of this log first`);
}

async function hashOf(password: string): Promise<string> {
  const hasher = new ScryptHasher({ clock: systemClock, random: systemRandom });
  try {
    return await hasher.hash(password, '', new AbortController().signal);
  } finally {
    hasher.stop();
  }
}
