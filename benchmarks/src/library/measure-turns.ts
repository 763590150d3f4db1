import type { Locker } from './lock-library.ts';

/** The number of times per second that an uncontended lock was acquired and released. */
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
