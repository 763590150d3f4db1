import { clockErrorMax } from '../leases/expiry-bound.ts';
import type { SimulationOptions, SimulationReport } from '../simulation-report.ts';
import { namedRandom } from '../world/named-random.ts';
import { DiskClient } from './disk-client.ts';
import type { DiskScenario } from './disk-scenario.ts';
import { DiskWorld } from './disk-world.ts';

const longestTtlMs = 3_000;
/** The last start, and every expiry after it. */
const quietMs = 2_000 + longestTtlMs / (1 - clockErrorMax) + 2_000;

/** Runs one production server on a simulated disk through many crashes, and judges each start. */
export async function simulateDisk(
  scenario: DiskScenario,
  { print }: Pick<SimulationOptions, 'print'> = {},
): Promise<SimulationReport> {
  const { seed, longestPauseMs, loadMs } = scenario;
  const world = new DiskWorld(scenario, print);
  const { schedule, checker, coverage } = world;
  const clients = Array.from({ length: scenario.clients }, (_, index) => {
    const name = `client-${index + 1}`;
    const random = namedRandom(seed, name);
    return new DiskClient({ ...world.connect(name), random, checker, coverage, longestPauseMs });
  });
  world.start();
  for (const client of clients) void client.run();
  await schedule.runUntil(loadMs);
  for (const client of clients) client.stop();
  world.heal();
  await schedule.runUntil(schedule.nowMs + quietMs);
  world.judgeEnd();
  return {
    seed,
    violations: world.violations.all,
    traceHash: schedule.traceHash,
    counts: coverage.totals,
    wronglyAwakeMs: 0,
  };
}
