import type { Locker } from './lock-library.ts';

/** Long enough that the second one waits, and random relative to the interval of libraries that poll. */
const settleMinMs = 150;
const settleSpreadMs = 250;

/** From the call of one locker's release to the end of the other one's acquire, in ms, in no order. */
export async function measureWakeUps(
  [first, second]: readonly [Locker, Locker],
  limits: { readonly count: number; readonly withinMs: number },
): Promise<readonly number[]> {
  const wakeUps: number[] = [];
  const endMs = performance.now() + limits.withinMs;
  let [holder, waiter] = [first, second];
  const take = (locker: Locker) => (locker.acquireInLine ?? locker.acquire)('wake-up');
  let held = await take(holder);
  while (wakeUps.length < limits.count && performance.now() < endMs) {
    let hasWoken = false;
    const next = take(waiter).then((value) => {
      hasWoken = true;
      return { value, atMs: performance.now() };
    });
    await new Promise((resolve) => setTimeout(resolve, settleMinMs + Math.random() * settleSpreadMs));
    if (hasWoken) throw new Error('a lock was given to a second one');
    const releasedMs = performance.now();
    const [{ value, atMs }] = await Promise.all([next, held.release()]);
    wakeUps.push(atMs - releasedMs);
    held = value;
    [holder, waiter] = [waiter, holder];
  }
  await held.release();
  return wakeUps;
}
