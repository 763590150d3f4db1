import type { Entry, EntryKey, LeaseBackend, LineWatch } from '../backend/lease-backend.ts';
import type { Clock } from '../time/clock.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import { attempt } from './attempt.ts';

const readLimitMs = 5_000;

/** A line as it was read once, for everybody who wanted to know. */
export interface Look {
  readonly entries: readonly Entry[];
  /** The same entry, if it was still there. */
  find(key: EntryKey): Entry | undefined;
}

/** One party's interest in a line. */
export interface LineView {
  /** What was read after this call was made. Rejects with a BackendError, or when the signal aborts. */
  look(signal: Signal): Promise<Look>;
  close(): void;
}

interface LineViewsOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  /** Ends all reading. */
  readonly signal: Signal;
}

/**
 * The lines that somebody of this manager looks at. All who look at one line share a watch and what is read: with a
 * thousand waiters a change costs one or two reads, and not a thousand.
 */
export class LineViews {
  readonly #options: LineViewsOptions;
  readonly #lines = new Map<string, SharedLine>();

  constructor(options: LineViewsOptions) {
    this.#options = options;
  }

  /** `onHint` is called when the line may have changed. */
  open(line: string, onHint: () => void): LineView {
    const shared = this.#lines.get(line) ?? new SharedLine(this.#options, line);
    this.#lines.set(line, shared);
    // Each party has an entry of its own, also when one function is given twice.
    const listener = (): void => onHint();
    shared.listeners.add(listener);
    return {
      look: (signal) => unlessAborted(signal, shared.look()),
      close: () => {
        shared.listeners.delete(listener);
        if (shared.listeners.size > 0 || this.#lines.get(line) !== shared) return;
        this.#lines.delete(line);
        shared.close();
      },
    };
  }
}

class SharedLine {
  readonly listeners = new Set<() => void>();
  readonly #options: LineViewsOptions;
  readonly #line: string;
  readonly #watch: LineWatch;
  #current: Promise<Look> | undefined;
  #next: Promise<Look> | undefined;

  constructor(options: LineViewsOptions, line: string) {
    this.#options = options;
    this.#line = line;
    this.#watch = options.backend.watch(line, () => {
      for (const listener of this.listeners) listener();
    });
  }

  /** A read that is under way may have missed what the caller knows of, so the caller gets the one after it. */
  look(): Promise<Look> {
    if (this.#current === undefined) {
      this.#current = this.#read().finally(() => (this.#current = undefined));
      return this.#current;
    }
    this.#next ??= this.#current.then(ignore, ignore).then(() => {
      this.#next = undefined;
      return this.look();
    });
    return this.#next;
  }

  close(): void {
    this.#watch.close();
  }

  async #read(): Promise<Look> {
    const { backend, clock, signal } = this.#options;
    const options = { clock, backend: backend.kind, limitMs: readLimitMs, signal };
    return lookAt(await attempt(options, (inner) => backend.list(this.#line, inner)));
  }
}

export function lookAt(entries: readonly Entry[]): Look {
  let byTicket: Map<bigint, Entry> | undefined;
  return {
    entries,
    find: (key) => {
      byTicket ??= new Map(entries.map((entry) => [entry.ticket, entry]));
      const found = byTicket.get(key.ticket);
      return found?.id === key.id ? found : undefined;
    },
  };
}

/** The reading itself ends in time by itself. */
function unlessAborted<T>(signal: Signal, reading: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const offAbort = onAbort(signal, () => reject(signal.reason));
    const end = (): void => offAbort();
    reading.then(resolve, reject).then(end, end);
  });
}

function ignore(): void {}
