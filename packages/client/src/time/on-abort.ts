import type { Signal } from './signal.ts';

interface Waiting {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

/** The callbacks of each signal. */
const waiting = new WeakMap<Signal, Waiting>();

/**
 * Calls back once when the signal aborts, at once if it has. The returned function removes the callback. All callbacks
 * of a signal share one listener, because Node warns of a leak with more than ten. The listener is removed with the
 * last callback, because Node keeps a signal of `AbortSignal.any` alive while it has a listener.
 */
export function onAbort(signal: Signal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => undefined;
  }
  const all = waiting.get(signal) ?? listenTo(signal);
  // A wrapper for each call, so that one function can be passed twice.
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
