import type { Signal } from './signal.ts';

/** By signal, those who wait for it to abort. */
const waiting = new WeakMap<Signal, Set<() => void>>();

/**
 * Calls back once when the signal aborts, at once if it has. The returned function takes that back. Many may wait for
 * one signal: it gets a single listener, since with more than ten Node warns of a leak.
 */
export function onAbort(signal: Signal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => undefined;
  }
  const waits = waiting.get(signal) ?? listenTo(signal);
  // Each call has an entry of its own, also when one function is given twice.
  const entry = (): void => callback();
  waits.add(entry);
  return () => waits.delete(entry);
}

function listenTo(signal: Signal): Set<() => void> {
  const waits = new Set<() => void>();
  waiting.set(signal, waits);
  const aborted = (): void => {
    waiting.delete(signal);
    for (const callback of waits) callback();
  };
  signal.addEventListener('abort', aborted, { once: true });
  return waits;
}
