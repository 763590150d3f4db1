import { onAbort } from './on-abort.ts';
import type { Signal } from './signal.ts';

/** What the promise gives, or the reason of the signal if it aborts first. What is left behind is never unhandled. */
export function abortable<T>(promise: Promise<T>, signal: Signal): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(() => forget());
  });
}
