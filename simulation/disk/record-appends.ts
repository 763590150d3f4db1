import type { LogEngine } from '../../packages/server/src/engines/log-engine.ts';
import type { Trace } from '../world/trace.ts';
import { entryText } from '../world/trace-text.ts';
import type { DiskChecker } from './disk-checker.ts';
import type { MountedDisk } from './mounted-disk.ts';

/** From now on the checker is told of the appends of this engine. */
export function recordAppends(engine: LogEngine, checker: DiskChecker, disk: MountedDisk, trace: Trace): LogEngine {
  const append = engine.append.bind(engine);
  engine.append = async (batch, after) => {
    for (const [at, bytes] of batch.entries()) {
      trace.note('server', () => `appends ${entryText(after.index + 1 + at, bytes)}`);
    }
    checker.appendBegun(batch);
    const end = await append(batch, after);
    trace.note('server', () => `has appended up to entry ${end.index}`);
    checker.appended(!disk.hasFailedWrite);
    return end;
  };
  return engine;
}
