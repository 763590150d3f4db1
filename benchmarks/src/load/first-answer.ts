/** The interval of new attempts while earlier ones may still be pending. */
const intervalMs = 10;
const timeoutMs = 60_000;

/**
 * Polls all targets without waiting for earlier attempts, until one of them returns true; resolves with the time of
 * that, in ms of the monotonic clock. Failed attempts are repeated.
 */
export function firstAnswer(what: string, asks: readonly (() => Promise<boolean>)[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const settle = (then: () => void) => {
      clearInterval(timer);
      then();
    };
    const askAll = () => {
      if (performance.now() - startedMs > timeoutMs) {
        settle(() => reject(new Error(`${what}: waited ${timeoutMs} ms without success`)));
        return;
      }
      for (const ask of asks) {
        ask().then(
          (yes) => yes && settle(() => resolve(performance.now())),
          () => undefined,
        );
      }
    };
    const timer = setInterval(askAll, intervalMs);
  });
}
