import type { AsyncLocalStorage } from 'node:async_hooks';

interface Work {
  isRunning: boolean;
}

/** Loaded at run time and not imported, so that a bundle for a browser works without it. */
const found = globalThis.process?.getBuiltinModule?.('node:async_hooks');
const storage: AsyncLocalStorage<Work> | undefined = found && new found.AsyncLocalStorage<Work>();

/** Runs work under a lease. `isInWork` is true for everything that it calls, until the work has ended. */
export async function asWork<T>(work: () => Promise<T>): Promise<T> {
  const context = { isRunning: true };
  try {
    return await (storage === undefined ? work() : storage.run(context, work));
  } finally {
    context.isRunning = false;
  }
}

/** Whether the caller runs inside `withLease` or `run` of an election. Disposing waits for such work to end. */
export function isInWork(): boolean {
  return storage?.getStore()?.isRunning ?? false;
}
