import { EngineError } from '../../engine-error.ts';
import { readBehind } from '../../testing/engine-case.ts';
import { nextPosition } from '../../chain-hash.ts';
import type { LogEngine, Position } from '../../log-engine.ts';

/**
 * Appends one entry as a leader does that nobody contests: where the outcome is not known, what follows tells it, and
 * what was certainly not written is tried again.
 */
export async function certainAppend(engine: LogEngine, bytes: Uint8Array, after: Position): Promise<Position> {
  const wanted = nextPosition(after, bytes);
  for (;;) {
    try {
      return await engine.append([bytes], after);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (error.code === 'conflict') {
        // An attempt whose outcome was not known has come in behind the look at what follows.
        if (error.tail?.hash === wanted.hash) return wanted;
        throw error;
      }
      if (error.code !== 'unknown' && error.code !== 'unavailable') throw error;
      const tail = await tailOnceReachable(engine);
      if (tail.index === after.index) continue;
      const [entry] = await readBehind(engine, after, 1);
      if (entry?.position.hash !== wanted.hash) throw new Error('somebody else has appended', { cause: error });
      return wanted;
    }
  }
}

async function tailOnceReachable(engine: LogEngine): Promise<Position> {
  for (;;) {
    try {
      return await engine.tail();
    } catch (error) {
      if (!(error instanceof EngineError && error.code === 'unavailable')) throw error;
    }
  }
}
