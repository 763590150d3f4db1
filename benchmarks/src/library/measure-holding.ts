import type { Held, Locker, LockStore } from './lock-library.ts';

const acquiringAtOnce = 50;

export interface Holding {
  /** Processor time of this process, in ms for each minute that all of them are held. */
  readonly cpuMs: number;
  /** For each lock and minute. */
  readonly requests: number;
}

/** The cost of holding many idle locks. */
export async function measureHolding(
  store: LockStore,
  locker: Locker,
  { locks, forMs }: { readonly locks: number; readonly forMs: number },
): Promise<Holding> {
  const held: Held[] = [];
  let next = 0;
  const take = async (): Promise<void> => {
    while (next < locks) held.push(await locker.acquire(`held-${next++}`));
  };
  await Promise.all(Array.from({ length: acquiringAtOnce }, take));
  const requestsBefore = await store.requests();
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  await new Promise((resolve) => setTimeout(resolve, forMs));
  const { user, system } = process.cpuUsage(cpuBefore);
  const minutes = (performance.now() - startMs) / 60_000;
  const requests = (await store.requests()) - requestsBefore;
  while (held.length > 0) await Promise.all(held.splice(0, acquiringAtOnce).map((each) => each.release()));
  return { cpuMs: (user + system) / 1000 / minutes, requests: requests / locks / minutes };
}
