import type { Entry, LeaseBackend } from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Clock } from '../time/clock.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import type { LineViews } from './line-views.ts';
import { Lookout } from './lookout.ts';

const retryMinMs = 100;
const retryMaxMs = 5_000;

interface LineReaderOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly views: LineViews;
  readonly line: string;
  /** Ends the reading: the reason is thrown. */
  readonly signal: Signal;
}

/**
 * The line of a name as it is now, and again each time that it may have changed, until the signal aborts. Whoever is
 * slow to ask for the next one misses what was in between, and gets the latest. An outage of the backend is waited
 * through; an error that will not pass is thrown.
 */
export async function* readLine(options: LineReaderOptions): AsyncGenerator<readonly Entry[], never> {
  const { signal } = options;
  signal.throwIfAborted();
  const lookout = new Lookout(options);
  const offAbort = onAbort(signal, () => lookout.wake());
  try {
    for (let failures = 0; ;) {
      signal.throwIfAborted();
      let entries: readonly Entry[];
      try {
        ({ entries } = await lookout.look(signal));
      } catch (error) {
        if (!(error instanceof BackendError) || error.backendCode !== 'unavailable') throw error;
        await lookout.pause(Math.min(retryMaxMs, retryMinMs * 2 ** failures++));
        continue;
      }
      failures = 0;
      yield entries;
      await lookout.next(entries);
    }
  } finally {
    offAbort();
    lookout.close();
  }
}
