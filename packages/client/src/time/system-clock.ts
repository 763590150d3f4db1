import type { Clock, Timer } from './clock.ts';

/** The largest delay of setTimeout; with a larger one it would call back at once. */
const longestDelayMs = 2 ** 31 - 1;

/** The clocks of the process. */
export const systemClock: Clock = {
  now: () => ({ monotonicMs: performance.now(), wallMs: Date.now() }),
  setTimer(delayMs: number, callback: () => void): Timer {
    let timer: NodeJS.Timeout;
    const arm = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, longestDelayMs);
      timer = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : callback()), stepMs);
      timer.unref();
    };
    // Node counts in whole milliseconds from the last one that began: without one more it is early by a part of that.
    arm(Math.max(0, Math.ceil(delayMs)) + 1);
    return { cancel: () => clearTimeout(timer) };
  },
};
