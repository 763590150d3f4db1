import type { Locker } from './lock-library.ts';

/** How many times in a second a lock that nobody else wants was taken and released again. */
export async function measureTurns(
  locker: Locker,
  { atOnce, forMs }: { readonly atOnce: number; readonly forMs: number },
): Promise<number> {
  const warmUpMs = forMs / 4;
  const startMs = performance.now() + warmUpMs;
  const endMs = startMs + forMs;
  let turns = 0;
  const take = async (name: string): Promise<void> => {
    while (performance.now() < endMs) {
      const held = await locker.acquire(name);
      await held.release();
      const nowMs = performance.now();
      if (nowMs > startMs && nowMs <= endMs) turns++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, at) => take(`turns-${atOnce}-${at}`)));
  return turns / (forMs / 1000);
}
