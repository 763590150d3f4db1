import type { Clock } from './clock.ts';
import { onAbort } from './on-abort.ts';
import type { Signal } from './signal.ts';

/** Resolves after the time, or sooner when a signal aborts. Never rejects: the caller checks the signals. */
export function sleep(clock: Clock, delayMs: number, ...signals: readonly Signal[]): Promise<void> {
  return new Promise((resolve) => {
    if (signals.some(({ aborted }) => aborted)) return resolve();
    const over = (): void => {
      timer.cancel();
      for (const stop of stops) stop();
      resolve();
    };
    const timer = clock.setTimer(delayMs, over);
    const stops = signals.map((signal) => onAbort(signal, over));
    return undefined;
  });
}
