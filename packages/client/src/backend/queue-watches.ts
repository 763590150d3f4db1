import type { QueueWatch } from './lease-backend.ts';

/** The callbacks of the watches, by the name of their queue. */
export class QueueWatches {
  readonly #watches = new Map<string, Set<() => void>>();

  add(name: string, onChange: () => void): QueueWatch {
    // A wrapper for each call, so that one function can be passed twice.
    const hint = (): void => onChange();
    const watches = this.#watches.get(name) ?? new Set();
    this.#watches.set(name, watches.add(hint));
    return {
      close: () => {
        watches.delete(hint);
        if (watches.size === 0 && this.#watches.get(name) === watches) this.#watches.delete(name);
      },
    };
  }

  hint(name: string): void {
    // Not within the call that made the change, because a callback may call the backend again, or throw.
    for (const hint of this.#watches.get(name) ?? []) queueMicrotask(() => callQuietly(hint));
  }

  hintAll(): void {
    for (const name of this.#watches.keys()) this.hint(name);
  }

  clear(): void {
    this.#watches.clear();
  }
}

function callQuietly(hint: () => void): void {
  try {
    hint();
  } catch {
    // The other watches still need their hints.
  }
}
