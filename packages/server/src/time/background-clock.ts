import type { Clock } from './clock.ts';
import { systemClock } from './system-clock.ts';

/** The real clocks, for what must not be what keeps a process alive that has nothing else to do. */
export const backgroundClock: Clock = {
  ...systemClock,
  after(delayMs, wake) {
    const timer = setTimeout(wake, delayMs).unref();
    return () => clearTimeout(timer);
  },
};
