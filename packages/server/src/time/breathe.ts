import type { Clock } from './clock.ts';

/** Lets the event loop read sockets and run timers before a long piece of work goes on. */
export function breathe(clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.soon(resolve));
}
