import type { Signal } from './signal.ts';

interface Waiting {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

/** By signal, those who wait for it to abort. */
const waiting = new WeakMap<Signal, Waiting>();

/**
 * Calls back once when the signal aborts, at once if it has. The returned function takes that back. Many may wait for
 * one signal: it gets a single listener, since with more than ten Node warns of a leak, and none when nobody waits any
 * more, since Node keeps a signal that was made of others for as long as somebody listens to it.
 */
export function onAbort(signal: Signal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => undefined;
  }
  const all = waiting.get(signal) ?? listenTo(signal);
  // Each call has an entry of its own, also when one function is given twice.
  const entry = (): void => callback();
  all.callbacks.add(entry);
  return () => {
    all.callbacks.delete(entry);
    if (all.callbacks.size > 0 || waiting.get(signal) !== all) return;
    waiting.delete(signal);
    signal.removeEventListener('abort', all.listener);
  };
}

function listenTo(signal: Signal): Waiting {
  const callbacks = new Set<() => void>();
  const listener = (): void => {
    waiting.delete(signal);
    for (const callback of callbacks) callback();
  };
  const all = { callbacks, listener };
  waiting.set(signal, all);
  signal.addEventListener('abort', listener, { once: true });
  return all;
}
