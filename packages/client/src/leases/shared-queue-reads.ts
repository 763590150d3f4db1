import type { Entry, EntryKey, LeaseBackend, QueueWatch } from '../backend/lease-backend.ts';
import type { Clock } from '../time/clock.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import { withTimeLimit } from './time-limit.ts';

const readLimitMs = 5_000;

/** The result of one read of a queue, shared by all callers that waited for it. */
export interface QueueSnapshot {
  readonly entries: readonly Entry[];
  /** The same entry, if it was still there. */
  find(key: EntryKey): Entry | undefined;
}

/** One caller's interest in a queue. */
export interface QueueSubscription {
  /** Resolves with a read that began after this call. Rejects with a BackendError, or when the signal aborts. */
  read(signal: Signal): Promise<QueueSnapshot>;
  close(): void;
}

interface SharedQueueReadsOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  /** Ends all reading. */
  readonly signal: Signal;
}

/**
 * The queues that callers of this manager read. All callers of one queue share a watch and its reads: with a thousand
 * waiters a change costs one or two reads, and not a thousand.
 */
export class SharedQueueReads {
  readonly #options: SharedQueueReadsOptions;
  readonly #queues = new Map<string, SharedQueue>();

  constructor(options: SharedQueueReadsOptions) {
    this.#options = options;
  }

  /** `onHint` is called when the queue may have changed. */
  subscribe(queue: string, onHint: () => void): QueueSubscription {
    const shared = this.#queues.get(queue) ?? new SharedQueue(this.#options, queue);
    this.#queues.set(queue, shared);
    // A wrapper for each call, so that one function can be passed twice.
    const listener = (): void => onHint();
    shared.listeners.add(listener);
    return {
      read: (signal) => unlessAborted(signal, shared.read()),
      close: () => {
        shared.listeners.delete(listener);
        if (shared.listeners.size > 0 || this.#queues.get(queue) !== shared) return;
        this.#queues.delete(queue);
        shared.close();
      },
    };
  }
}

class SharedQueue {
  readonly listeners = new Set<() => void>();
  readonly #options: SharedQueueReadsOptions;
  readonly #queue: string;
  readonly #watch: QueueWatch;
  #current: Promise<QueueSnapshot> | undefined;
  #next: Promise<QueueSnapshot> | undefined;

  constructor(options: SharedQueueReadsOptions, queue: string) {
    this.#options = options;
    this.#queue = queue;
    this.#watch = options.backend.watch(queue, () => {
      for (const listener of this.listeners) listener();
    });
  }

  /** A read in flight may have missed a change that the caller knows of, so the caller gets the one after it. */
  read(): Promise<QueueSnapshot> {
    if (this.#current === undefined) {
      this.#current = this.#read().finally(() => (this.#current = undefined));
      return this.#current;
    }
    this.#next ??= this.#current.then(ignore, ignore).then(() => {
      this.#next = undefined;
      return this.read();
    });
    return this.#next;
  }

  close(): void {
    this.#watch.close();
  }

  async #read(): Promise<QueueSnapshot> {
    const { backend, clock, signal } = this.#options;
    const options = { clock, backend: backend.kind, limitMs: readLimitMs, signal };
    return snapshotOf(await withTimeLimit(options, (inner) => backend.list(this.#queue, inner)));
  }
}

export function snapshotOf(entries: readonly Entry[]): QueueSnapshot {
  let bySequence: Map<bigint, Entry> | undefined;
  return {
    entries,
    find: (key) => {
      bySequence ??= new Map(entries.map((entry) => [entry.sequence, entry]));
      const found = bySequence.get(key.sequence);
      return found?.id === key.id ? found : undefined;
    },
  };
}

/** The read itself has a time limit of its own. */
function unlessAborted<T>(signal: Signal, reading: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const offAbort = onAbort(signal, () => reject(signal.reason));
    const end = (): void => offAbort();
    reading.then(resolve, reject).then(end, end);
  });
}

function ignore(): void {}
