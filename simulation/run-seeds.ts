import { scenarioOf, simulateScenario, type Scenario } from './simulate.ts';
import type { SimulationOptions } from './simulation-report.ts';

export interface SeedFailure {
  readonly seed: number;
  readonly violations: readonly string[];
}

export interface SeedRun {
  readonly seeds: number;
  readonly failures: readonly SeedFailure[];
  /** Totals over all seeds. An event that never happened was not tested. */
  readonly counts: Readonly<Record<string, number>>;
}

export interface SeedRunOptions extends SimulationOptions {
  /** Errors outside of any promise chain that the process has caught: each belongs to the seed that is running. */
  readonly strays?: Error[];
}

/** The number of failures after which the run stops. */
const maxFailures = 10;

/** Runs seeds, or scenarios, one after the other. A seed that throws fails. */
export async function runSeeds(
  seeds: Iterable<number | Scenario>,
  { strays = [], ...options }: SeedRunOptions = {},
): Promise<SeedRun> {
  const counts: Record<string, number> = {};
  const failures: SeedFailure[] = [];
  let done = 0;
  for (const each of seeds) {
    if (failures.length >= maxFailures) break;
    const scenario = typeof each === 'number' ? scenarioOf(each) : each;
    const violations: string[] = [];
    try {
      const report = await simulateScenario(scenario, options);
      violations.push(...report.violations);
      for (const [name, count] of Object.entries(report.counts)) counts[name] = (counts[name] ?? 0) + count;
    } catch (error) {
      strays.push(error as Error);
    }
    for (const error of strays.splice(0)) violations.push(`failed: ${error instanceof Error ? error.stack : error}`);
    done += 1;
    if (violations.length > 0) failures.push({ seed: scenario.seed, violations });
  }
  return { seeds: done, failures, counts };
}

/** All seeds from `first` on. */
export function* seedsFrom(first: number, count = Infinity): Generator<number> {
  for (let seed = first; seed < first + count; seed += 1) yield seed;
}
