import type { Clock } from './clock.ts';

/** Resolves after `delayMs`, or sooner when `signal` aborts. Never rejects: the caller checks the signal. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const over = (): void => {
      cancel();
      signal?.removeEventListener('abort', over);
      resolve();
    };
    const cancel = clock.after(delayMs, over);
    signal?.addEventListener('abort', over);
  });
}
