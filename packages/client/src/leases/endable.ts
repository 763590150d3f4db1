import type { Signal } from '../time/signal.ts';

/**
 * What the generator gives, as an iterable that can be ended at any moment. A generator takes up `return` only when
 * whoever waits for its next value has got one; of a line that stays as it is that may be never, and its watch with it.
 * Here `return` aborts the signal that the generator reads by, and who waits is told that it is done.
 */
export function endable<T>(
  signal: Signal | undefined,
  begin: (ending: Signal) => AsyncGenerator<T, never>,
): AsyncIterableIterator<T> {
  const ended = new AbortController();
  const values = begin(signal === undefined ? ended.signal : AbortSignal.any([signal, ended.signal]));
  const done = { done: true, value: undefined } as const;
  return {
    next: async () => {
      try {
        return await values.next();
      } catch (error) {
        if (ended.signal.aborted) return done;
        // What listens to it has no reason to stay.
        ended.abort();
        throw error;
      }
    },
    return: async () => {
      ended.abort();
      await values.return(undefined as never);
      return done;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
