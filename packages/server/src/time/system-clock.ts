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
    // A timer callback runs before the poll phase of its turn. The first immediate runs behind that poll phase, which
    // may have been cut short by the timers' backlog; the second has a whole one in front of it (measured on Node 20:
    // after a stall a timer fires before a renewal that has been in the socket buffer for most of a second).
    setImmediate(() => setImmediate(next));
  },
};
