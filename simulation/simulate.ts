import { Cluster, type Omissions } from './cluster.ts';
import { Faults } from './faults.ts';
import { clockErrorMax } from './expiry-bound.ts';
import type { LeaseChecker } from './lease-checker.ts';
import { scenarioOf } from './scenario.ts';
import { SeededRandom } from '@tenure/test-support';

export interface SimulationReport {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly traceHash: number;
  readonly counts: LeaseChecker['counts'];
  readonly wronglyAwakeMs: number;
}

/** After the healing: the last pause ends, a leader is found, and whoever still renews has been heard. */
const recoveryMs = 8_000;
/** What an expiry may be late by on a cluster in good health. */
const healthySlackMs = 1_000;
/** Clients of living leases must have been answered this lately. */
const freshMs = 1_000;

/** Runs one seed from beginning to end: things go wrong, things are healed, and everything must come right. */
export async function simulate(seed: number, omissions: Omissions = {}): Promise<SimulationReport> {
  const random = new SeededRandom(seed);
  const scenario = scenarioOf(random);
  const cluster = new Cluster(scenario, random.split(), omissions);
  const faults = new Faults(cluster, scenario, random.split());
  const { schedule, checker, holders } = cluster;
  cluster.start();
  faults.start();
  await schedule.runUntil(scenario.faultsMs);
  faults.heal();
  for (const holder of holders) holder.settle();
  await schedule.runUntil(scenario.faultsMs + recoveryMs);
  const kept = holders.filter(({ renewing, id }) => renewing && checker.exists(id));
  const longestMs = scenario.ttlMs[1];
  const lastMs = longestMs * (1 + clockErrorMax) + healthySlackMs;
  await schedule.runUntil(schedule.nowMs + lastMs);
  for (const { id, ttlMs, lastSuccessMs } of kept) {
    if (!checker.exists(id) && checker.endOf(id)?.cause === 'revoked') continue;
    if (!checker.exists(id)) checker.violated('L10', `lease ${id} was renewed all the time, and is gone`);
    else if (lastSuccessMs < schedule.nowMs - ttlMs / 3 - freshMs) {
      checker.violated('liveness', `renewals of lease ${id} are not answered`);
    }
  }
  for (const { id, renewing } of holders) {
    if (!renewing && checker.exists(id))
      checker.violated('L7', `lease ${id} was abandoned long ago, and is still there`);
  }
  const lastHash = checker.state.stateHash();
  for (const { server } of cluster.machines) {
    if (server.replica.state.appliedIndex + 20 < checker.state.appliedIndex) {
      checker.violated('liveness', `server ${server.leaderId} does not follow`);
    }
    const { appliedIndex } = checker.state;
    if (server.replica.state.appliedIndex === appliedIndex && server.replica.state.stateHash() !== lastHash) {
      checker.violated('L9', `the state of ${server.leaderId} differs at index ${appliedIndex}`);
    }
  }
  const { violations, counts, wronglyAwakeMs } = checker;
  return { seed, violations, traceHash: schedule.traceHash, counts, wronglyAwakeMs };
}
