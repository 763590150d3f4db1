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

/** Runs one seed after the other. Failing seeds are printed with how to replay. */
export async function runSeeds(seeds: Iterable<number>, omissions: Omissions = {}): Promise<SeedRun> {
  const counts = { expired: 0, acknowledged: 0, claims: 0, dated: 0, renewedByLog: 0, revoked: 0, resigned: 0 };
  const failures: SimulationReport[] = [];
  let done = 0;
  for (const seed of seeds) {
    if (failures.length >= failuresMax) break;
    const report = await simulate(seed, omissions);
    done += 1;
    for (const name of Object.keys(counts) as (keyof typeof counts)[]) counts[name] += report.counts[name];
    if (report.violations.length === 0) continue;
    failures.push(report);
    const replay = `SIMULATION_SEED=${seed} npx vitest run --project unit simulation/leadership.test.ts`;
    console.log(`seed ${seed} fails, replay with: ${replay}\n  ${report.violations.join('\n  ')}`);
  }
  return { seeds: done, failures, counts };
}

/** All seeds from `first` on. */
export function* seedsFrom(first: number, count = Infinity): Generator<number> {
  for (let seed = first; seed < first + count; seed += 1) yield seed;
}
