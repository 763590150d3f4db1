import { StateMachine, type Command } from '@tenure/core';
import { logStart } from '../engines/chain-hash.ts';
import { EngineError } from '../engines/engine-error.ts';
import type { LogEngine, Position } from '../engines/log-engine.ts';
import type { Clock } from '../time/clock.ts';
import { sleep } from '../time/sleep.ts';
import { decodeEntry, type EncodedCommand } from './entry-codec.ts';
import { loadSnapshot } from './load-snapshot.ts';

/** The state recovered from the log, and its position. */
export interface Recovered {
  readonly state: StateMachine;
  readonly position: Position;
  /** The number of entries applied on top of the snapshot. */
  readonly replayed: number;
}

/** Attempts to recover. Other servers may write snapshots and trim the log during the read, which then starts over. */
const maxTries = 10;
const retryDelayMs = 200;

/** Loads the newest snapshot and applies every entry behind it, up to the current end of the log. */
export async function recover(
  engine: LogEngine,
  decode: (command: EncodedCommand) => Command,
  clock: Clock,
): Promise<Recovered> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await recoverOnce(engine, decode, clock);
    } catch (error) {
      const passing = error instanceof EngineError && (error.code === 'trimmed' || error.code === 'unavailable');
      if (!passing || tries >= maxTries) throw error;
      await sleep(clock, retryDelayMs);
    }
  }
}

async function recoverOnce(
  engine: LogEngine,
  decode: (command: EncodedCommand) => Command,
  clock: Clock,
): Promise<Recovered> {
  const loaded = await loadSnapshot(engine, clock);
  const state = loaded?.state ?? new StateMachine();
  let position = loaded?.position ?? logStart;
  const { index: tailIndex } = await engine.tail();
  const replayed = tailIndex - position.index;
  if (replayed > 0) position = await replay(engine, state, position, tailIndex, decode);
  return { state, position, replayed };
}

async function replay(
  engine: LogEngine,
  state: StateMachine,
  from: Position,
  tailIndex: number,
  decode: (command: EncodedCommand) => Command,
): Promise<Position> {
  const stop = new AbortController();
  let position = from;
  for await (const entries of engine.follow(from, stop.signal)) {
    for (const { position: at, bytes } of entries) {
      const { headers, commands } = decodeEntry(bytes);
      // All commands are decoded before any is applied: an unknown kind stops the server with the state untouched.
      const { epoch, timeMs } = headers;
      // No client waits for outcomes from before this start.
      state.apply({ index: at.index, epoch, timeMs, commands: commands.map(decode) }, () => false);
      position = at;
    }
    if (position.index >= tailIndex) break;
  }
  stop.abort();
  if (position.index < tailIndex)
    throw new Error(`the log ended at index ${position.index}, before its tail ${tailIndex}`);
  return position;
}
