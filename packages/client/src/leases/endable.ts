import { onAbort } from '../time/on-abort.ts';
import type { ProcessRef } from '../time/process-ref.ts';
import type { Signal } from '../time/signal.ts';

interface EndableOptions {
  readonly signal: Signal | undefined;
  /** Kept alive while somebody waits for the next value. */
  readonly processRef: ProcessRef;
}

/**
 * What the generator gives, as an iterable that can be ended at any moment. A generator takes up `return` only when
 * whoever waits for its next value has got one; of a line that stays as it is that may be never, and its watch with it.
 * Here `return` aborts the signal that the generator reads by, and who waits is told that it is done.
 */
export function endable<T>(
  { signal, processRef }: EndableOptions,
  begin: (ending: Signal) => AsyncGenerator<T, never>,
): AsyncIterableIterator<T> {
  const ended = new AbortController();
  const values = begin(ended.signal);
  const done = { done: true, value: undefined } as const;
  let isReturned = false;
  let forget: (() => void) | undefined;
  const end = (): void => {
    forget?.();
    // Whatever still listens to it has no reason to stay.
    ended.abort();
  };
  return {
    next: async () => {
      // One that listens keeps it: a signal made of it would not, and one by a timer would be gone before its time.
      if (signal !== undefined && !isReturned) forget ??= onAbort(signal, () => ended.abort(signal.reason));
      try {
        return await processRef.during(() => values.next());
      } catch (error) {
        end();
        if (isReturned) return done;
        throw error;
      }
    },
    return: async () => {
      isReturned = true;
      end();
      await values.return(undefined as never);
      return done;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
