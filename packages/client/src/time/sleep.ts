import type { Clock } from './clock.ts';
import { onAbort } from './on-abort.ts';
import type { Signal } from './signal.ts';

/** Resolves after the time, or sooner when the signal aborts. Never rejects: who sleeps looks at the signal itself. */
export function sleep(clock: Clock, delayMs: number, signal: Signal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const offAbort = onAbort(signal, () => {
      timer.cancel();
      resolve();
    });
    const timer = clock.setTimer(delayMs, () => {
      offAbort();
      resolve();
    });
    return undefined;
  });
}
