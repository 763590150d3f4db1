import type { LineWatch } from './lease-backend.ts';

/** Who is to be told when a line changes, by its name. */
export class LineWatches {
  readonly #watches = new Map<string, Set<() => void>>();

  add(name: string, onChange: () => void): LineWatch {
    // Each call has an entry of its own, also when one function is given twice.
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
    // Not within the call that changed it: who listens may call again, or throw.
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
    // A hint has nobody to answer to, and the others still need theirs.
  }
}
