import type { AsyncLocalStorage } from 'node:async_hooks';

interface Work {
  isRunning: boolean;
}

/** Asked for at run time and not imported, so that a bundle for a browser can do without it. */
const found = globalThis.process?.getBuiltinModule?.('node:async_hooks');
const storage: AsyncLocalStorage<Work> | undefined = found && new found.AsyncLocalStorage<Work>();

/** Runs what is done under a lease, such that `isInWork` is true of all that it calls until it has ended. */
export async function asWork<T>(work: () => Promise<T>): Promise<T> {
  const context = { isRunning: true };
  try {
    return await (storage === undefined ? work() : storage.run(context, work));
  } finally {
    context.isRunning = false;
  }
}

/** Whether the caller runs under a lease, in `withLease` or `run` of an election, whose end disposing waits for. */
export function isInWork(): boolean {
  return storage?.getStore()?.isRunning ?? false;
}
