import type { Clock } from './clock.ts';

/**
 * Calls `wake` again and again, `intervalMs` after the last time; a process that stood still calls it once. Returns a
 * function that ends it.
 */
export function every(clock: Clock, intervalMs: number, wake: () => void): () => void {
  let cancel: () => void;
  const arm = (): void => {
    cancel = clock.after(intervalMs, () => {
      // Armed first, so that `wake` may end it.
      arm();
      wake();
    });
  };
  arm();
  return () => cancel();
}
