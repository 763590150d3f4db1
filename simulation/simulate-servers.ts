import { Access } from './access/access.ts';
import { Faults } from './faults.ts';
import { clockErrorMax } from './leases/expiry-bound.ts';
import { KeyClient } from './keys/key-client.ts';
import { WatchClient } from './watches/watch-client.ts';
import { LeaseHolder } from './leases/lease-holder.ts';
import type { ServersScenario } from './servers-scenario.ts';
import type { SimulationOptions, SimulationReport } from './simulation-report.ts';
import { Rollout } from './upgrades/rollout.ts';
import { World } from './world/world.ts';

/** After healing: until every server serves and follows the log, and one leads. */
const maxRecoveryMs = 15_000;
/** For each server that is left to be upgraded then. */
const maxUpgradeMs = 6_000;
const recoveryStepMs = 250;
/** Then: enough for every renewal to be answered, and for every watch to catch up. */
const settleMs = 2_500;
/** The client that makes the last requests. */
const proverNumber = 100;
/** The longest delay of an expiry on a healthy cluster. */
const healthySlackMs = 1_000;
/** Clients of existing leases must have been answered this recently. */
const freshMs = 1_000;

/** Servers on one log: faults are injected, then healed, and the cluster must recover completely. */
export async function simulateServers(
  scenario: ServersScenario,
  { hidesSuspension = false, print }: SimulationOptions,
): Promise<SimulationReport> {
  const { seed, servers, isShared, maxPendingCommands, lateShare, snapshotCount, faultsMs } = scenario;
  const world = new World({
    seed,
    servers,
    olderServers: scenario.olderServers,
    isShared,
    maxPendingCommands,
    lateShare,
    windowBytes: scenario.windowBytes,
    serverFlags: [
      ...['--snapshot-count', `${snapshotCount}`, '--watch-progress-notify-interval', '700ms'],
      // Longer than the time between two renewals: clients with a token that has expired log in again.
      ...(scenario.access.length > 0 ? ['--auth-token-ttl', `${1 + Math.ceil(scenario.ttlMs[1] / 1_000)}`] : []),
      ...(scenario.readsByLease ? ['--reads', 'lease'] : []),
    ],
    hidesSuspension,
    print,
  });
  const { schedule, leases } = world;
  const access = new Access(world, scenario.access);
  const clients: Clients = { world, access, scenario };
  const holders = Array.from({ length: scenario.holders }, (_, index) => newHolder(clients, index));
  const keyClients = Array.from({ length: scenario.keyClients }, (_, at) => newKeyClient(clients, at + 1));
  const watchClients = Array.from({ length: scenario.watchClients }, (_, at) => newWatchClient(clients, at + 1));
  const faults = new Faults(world);
  const rollout = new Rollout(world, scenario.olderServers, (machine, downMs) => faults.close(machine, downMs));
  world.start();
  rollout.start();
  access.start();
  for (const client of [...holders, ...keyClients, ...watchClients]) client.start();
  faults.start(scenario.faults, scenario.engineTrouble);
  await schedule.runUntil(faultsMs);
  faults.heal();
  rollout.hurry();
  access.settle();
  for (const client of [...holders, ...keyClients, ...watchClients]) client.settle();
  const limitMs = faultsMs + maxRecoveryMs + scenario.olderServers.length * maxUpgradeMs;
  await recover(world, rollout, limitMs);
  await access.finish();
  const prover = scenario.keyClients > 0 ? newKeyClient(clients, proverNumber) : undefined;
  prover?.prove(schedule.nowMs + settleMs);
  await schedule.runUntil(schedule.nowMs + settleMs);
  if (prover?.isProved === false) world.violations.report('liveness', 'no request about keys is answered');
  const { currentRevision } = world.keys.oracle;
  const kept = holders.filter(({ isRenewing, id }) => isRenewing && leases.exists(id));
  await schedule.runUntil(schedule.nowMs + scenario.ttlMs[1] * (1 + clockErrorMax) + healthySlackMs);
  world.keys.finish();
  world.watches.finish(currentRevision);
  world.upgrades?.finish();
  judgeEnd(world, holders, kept);
  const counts = world.coverage.totals;
  return {
    seed,
    violations: world.allViolations,
    traceHash: schedule.traceHash,
    counts,
    wronglyAwakeMs: leases.wronglyAwakeMs,
  };
}

/**
 * Until the effects of the faults are over. Without other servers nothing need be appended, and nothing was slow. On a
 * shared log, a server that has applied an entry of now waits for no answer that was delayed before.
 */
async function recover(world: World, rollout: Rollout, limitMs: number): Promise<void> {
  const { schedule, log, isShared } = world;
  const index = isShared ? log.tail.index + 1 : log.tail.index;
  const isWhole = (): boolean => world.isWholeAt(index) && rollout.isDone;
  while (!isWhole() && schedule.nowMs < limitMs) await schedule.runUntil(schedule.nowMs + recoveryStepMs);
  if (isWhole()) return;
  world.violations.report('liveness', 'not every server serves and follows the log long after all faults');
}

/** What the clients of a world are made of. */
interface Clients {
  readonly world: World;
  readonly access: Access;
  readonly scenario: ServersScenario;
}

function newHolder({ world, access, scenario: { ttlMs } }: Clients, index: number): LeaseHolder {
  const name = `holder-${index + 1}`;
  const random = world.random(name);
  const clock = world.clientClock();
  return new LeaseHolder({
    id: BigInt(index + 1),
    ttlMs: Math.round(random.between(...ttlMs)),
    clock,
    random,
    checker: world.leases,
    toldRevision: () => world.keys.toldRevision,
    connect: () => access.connect(name, clock, random),
  });
}

function newKeyClient({ world, access, scenario }: Clients, number: number): KeyClient {
  const { compactChance, largeBytes } = scenario;
  const name = `key-client-${number}`;
  const random = world.random(name);
  const clock = world.clientClock();
  return new KeyClient({
    number,
    clock,
    random,
    connect: () => access.connect(name, clock, random),
    checker: world.keys,
    coverage: world.coverage,
    compactChance,
    largeBytes,
  });
}

function newWatchClient({ world, access }: Clients, number: number): WatchClient {
  const name = `watch-client-${number}`;
  const random = world.random(name);
  const clock = world.clientClock();
  return new WatchClient({
    number,
    clock,
    random,
    connect: () => access.connect(name, clock, random),
    checker: world.watches,
    coverage: world.coverage,
    standStill: (forMs) => {
      clock.pause();
      world.schedule.in(forMs, () => clock.resume());
    },
  });
}

/** The rules of a cluster that has been healthy for long enough. */
function judgeEnd(world: World, holders: readonly LeaseHolder[], kept: readonly LeaseHolder[]): void {
  const { leases, schedule, violations } = world;
  for (const { id, ttlMs, lastSuccessMs } of kept) {
    if (!leases.exists(id) && leases.endOf(id)?.cause === 'revoked') continue;
    if (!leases.exists(id)) violations.report('L10', `lease ${id} is gone although it was always renewed`);
    else if (lastSuccessMs < schedule.nowMs - ttlMs - freshMs) {
      violations.report('liveness', `renewals of lease ${id} are not answered`);
    }
  }
  for (const { id, isRenewing } of holders) {
    if (!isRenewing && leases.exists(id)) {
      violations.report('L7', `lease ${id} was abandoned long ago, and still exists`);
    }
  }
  const { appliedIndex } = leases.state;
  const lastHash = leases.state.stateHash();
  for (const { name, process } of world.machines) {
    const state = process.server?.state;
    if (state === undefined || state.appliedIndex + 20 < appliedIndex) {
      violations.report('liveness', `${name} does not follow`);
    } else if (state.appliedIndex === appliedIndex && state.stateHash() !== lastHash) {
      violations.report('L9', `the state of ${name} differs at index ${appliedIndex}`);
    }
  }
}
