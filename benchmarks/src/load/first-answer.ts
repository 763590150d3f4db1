/** How often a new question is asked while the ones before may still be without an answer. */
const intervalMs = 10;
const timeoutMs = 60_000;

/**
 * Asks all, again and again without waiting for the answers, until one of them says yes; resolves with the time, in ms
 * of the monotonic clock, at which that came. What fails is asked again.
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
        settle(() => reject(new Error(`${what}: waited ${timeoutMs} ms in vain`)));
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
