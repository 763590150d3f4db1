import type { Clock } from './clock.ts';

/**
 * Calls `wake` repeatedly, `intervalMs` after the last call; a process that was stopped gets one call. Returns a
 * function that stops it.
 */
export function every(clock: Clock, intervalMs: number, wake: () => void): () => void {
  let cancel: () => void;
  const arm = (): void => {
    cancel = clock.after(intervalMs, () => {
      // Set first, so that `wake` may stop the repetition.
      arm();
      wake();
    });
  };
  arm();
  return () => cancel();
}
