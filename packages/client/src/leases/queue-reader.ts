import type { Entry, LeaseBackend } from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Clock } from '../time/clock.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import type { SharedQueueReads } from './shared-queue-reads.ts';
import { QueueWatcher } from './queue-watcher.ts';

const retryMinMs = 100;
const retryMaxMs = 5_000;

interface QueueReaderOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly queueReads: SharedQueueReads;
  readonly queue: string;
  /** Ends the iteration: the reason is thrown. */
  readonly signal: Signal;
}

/**
 * Yields the queue of a name as it is now, and again each time that it may have changed, until the signal aborts. A
 * slow consumer skips the states in between and gets the latest. Reads are retried while the backend is unavailable;
 * every other error is thrown.
 */
export async function* readQueue(options: QueueReaderOptions): AsyncGenerator<readonly Entry[], never> {
  const { signal } = options;
  signal.throwIfAborted();
  const watcher = new QueueWatcher(options);
  const offAbort = onAbort(signal, () => watcher.wake());
  try {
    for (let failures = 0; ;) {
      signal.throwIfAborted();
      let entries: readonly Entry[];
      try {
        ({ entries } = await watcher.read(signal));
      } catch (error) {
        if (!(error instanceof BackendError) || error.backendCode !== 'unavailable') throw error;
        await watcher.pause(Math.min(retryMaxMs, retryMinMs * 2 ** failures++));
        continue;
      }
      failures = 0;
      yield entries;
      await watcher.nextRead(entries);
    }
  } finally {
    offAbort();
    watcher.close();
  }
}
