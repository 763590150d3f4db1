import { EngineError } from '../../engine-error.ts';
import { readBehind } from '../../testing/engine-case.ts';
import { nextPosition } from '../../chain-hash.ts';
import type { LogEngine, Position } from '../../log-engine.ts';

/**
 * Appends one entry as an uncontested leader does: an unknown outcome is resolved by reading the log, and an entry that
 * was certainly not written is appended again.
 */
export async function certainAppend(engine: LogEngine, bytes: Uint8Array, after: Position): Promise<Position> {
  const wanted = nextPosition(after, bytes);
  for (;;) {
    try {
      return await engine.append([bytes], after);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (error.code === 'conflict') {
        // The entry of an attempt with an unknown outcome was committed after the read.
        if (error.tail?.hash === wanted.hash) return wanted;
        throw error;
      }
      if (error.code !== 'unknown' && error.code !== 'unavailable') throw error;
      const tail = await tailOnceReachable(engine);
      if (tail.index === after.index) continue;
      const [entry] = await readBehind(engine, after, 1);
      if (entry?.position.hash !== wanted.hash) throw new Error('another server has appended', { cause: error });
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
