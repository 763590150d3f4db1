import type { Clock } from './clock.ts';

/** The real clocks. Timers keep the process alive on purpose: a server that holds leases must not exit by itself. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(delayMs, wake) {
    const timer = setTimeout(wake, delayMs);
    return () => clearTimeout(timer);
  },
  soon: (next) => void setImmediate(next),
  afterPoll(next) {
    // A timer callback runs before the poll phase of its turn. The first immediate runs after that poll phase, which
    // may have been shortened by the timers' backlog; the second has a whole poll phase before it (measured on Node 20:
    // after a stall a timer fires before a renewal that has been in the socket buffer for most of a second).
    setImmediate(() => setImmediate(next));
  },
};

/** The real clocks, for timers that must not keep an otherwise idle process alive. */
export const backgroundClock: Clock = {
  ...systemClock,
  after(delayMs, wake) {
    const timer = setTimeout(wake, delayMs).unref();
    return () => clearTimeout(timer);
  },
};
