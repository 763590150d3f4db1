/** Lets the event loop read sockets and run timers before a long piece of work goes on. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
