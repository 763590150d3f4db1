import { onAbort } from './on-abort.ts';
import type { Signal } from './signal.ts';

/** Settles like the promise, or rejects with the signal's reason if that aborts first. No rejection is unhandled. */
export function abortable<T>(promise: Promise<T>, signal: Signal): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(() => forget());
  });
}
