import { onAbort } from '../time/on-abort.ts';
import type { ProcessRef } from '../time/process-ref.ts';
import type { Signal } from '../time/signal.ts';

interface CancellableIteratorOptions {
  readonly signal: Signal | undefined;
  /** Referenced while a caller waits for the next value. */
  readonly processRef: ProcessRef;
}

/**
 * The values of the generator, as an iterator that can be ended at any time. A plain generator queues `return` behind a
 * pending `next`, which may never settle while a queue does not change, and its watch would stay open. Here `return`
 * aborts the signal that the generator was given, and a pending `next` resolves as done.
 */
export function cancellableIterator<T>(
  { signal, processRef }: CancellableIteratorOptions,
  generate: (ended: Signal) => AsyncGenerator<T, never>,
): AsyncIterableIterator<T> {
  const ended = new AbortController();
  const values = generate(ended.signal);
  const done = { done: true, value: undefined } as const;
  let isReturned = false;
  let forget: (() => void) | undefined;
  const end = (): void => {
    forget?.();
    // Removes the listeners of the generator.
    ended.abort();
  };
  return {
    next: async () => {
      // A listener keeps the signal alive. A signal derived from it would not, and a timeout signal could be collected.
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
