import type { Clock } from './clock.ts';

/** Lets the event loop read sockets and run timers before a long computation continues. */
export function yieldToEventLoop(clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.soon(resolve));
}
