import type { SeededRandom } from '@tenure/test-support';

/** What kind of bad day a seed makes. */
export interface Scenario {
  readonly machines: number;
  readonly holders: number;
  /** Shortest and longest. */
  readonly ttlMs: readonly [number, number];
  /** How long things go wrong. After that everything is healed. */
  readonly faultsMs: number;
  /** Between two faults. */
  readonly gapMs: readonly [number, number];
  readonly engineTrouble: number;
  /** How often the server that leads is the one that is hit. */
  readonly atLeader: number;
}

export function scenarioOf(random: SeededRandom): Scenario {
  const kind = random.next();
  const machines = random.pick([2, 3, 3, 3]);
  const holders = Math.floor(random.between(3, 9));
  if (kind < 0.3) {
    // The leader falls again and again, within the TTL of the leases.
    const scenario = { ttlMs: [3_000, 6_000], gapMs: [2_000, 3_500], engineTrouble: 0.2, atLeader: 1 } as const;
    return { machines, holders, faultsMs: 18_000, ...scenario };
  }
  const engineTrouble = random.pick([0, 0.3, 1]);
  const faultsMs = random.between(4_000, 9_000);
  if (kind < 0.4)
    return { machines, holders, ttlMs: [300, 900], faultsMs, gapMs: [3_000, 6_000], engineTrouble, atLeader: 1 };
  return { machines, holders, ttlMs: [500, 2_500], faultsMs, gapMs: [300, 2_500], engineTrouble, atLeader: 0.6 };
}
