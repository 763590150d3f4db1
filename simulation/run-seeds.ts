import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Omissions } from './cluster.ts';
import { simulate, type SimulationReport } from './simulate.ts';

export interface SeedRun {
  readonly seeds: number;
  readonly failures: readonly SimulationReport[];
  /** Summed over all seeds: what never happened was not tested. */
  readonly counts: SimulationReport['counts'];
}

/** Failures beyond so many add nothing. */
const failuresMax = 10;
/** A seed takes no turn of the event loop. After so many of them the runner of the tests is heard. */
const seedsPerTurn = 100;

/** Runs one seed after the other. Failing seeds are printed with how to replay. */
export async function runSeeds(seeds: Iterable<number>, omissions: Omissions = {}): Promise<SeedRun> {
  const counts = { expired: 0, acknowledged: 0, claims: 0, dated: 0, renewedByLog: 0, revoked: 0, resigned: 0 };
  const failures: SimulationReport[] = [];
  let done = 0;
  for (const seed of seeds) {
    if (failures.length >= failuresMax) break;
    if (done % seedsPerTurn === 0) await nextTurn();
    const report = await simulate(seed, omissions);
    done += 1;
    for (const name of Object.keys(counts) as (keyof typeof counts)[]) counts[name] += report.counts[name];
    if (report.violations.length === 0) continue;
    failures.push(report);
    const replay = `SIMULATION_SEED=${seed} npm test -- simulation/leadership.test.ts`;
    console.log(`seed ${seed} fails, replay with: ${replay}\n  ${report.violations.join('\n  ')}`);
  }
  return { seeds: done, failures, counts };
}

/** What never happened was not tested. */
export function expectAllHappened(counts: SeedRun['counts']): void {
  for (const [what, count] of Object.entries(counts)) expect(count, what).toBeGreaterThan(10);
}

/** All seeds from `first` on. */
export function* seedsFrom(first: number, count = Infinity): Generator<number> {
  for (let seed = first; seed < first + count; seed += 1) yield seed;
}
