import { SeededRandom } from '@tenure/test-support';
import { newestOlderKind } from './upgrades/older-version.ts';
import { type AccessStep, accessStepsOf } from './access/access-scenario.ts';
import { namedRandom } from './world/named-random.ts';

export const faultKinds = [
  'stall',
  'busy',
  'suspend',
  'kill',
  'close',
  'wall step',
  'streams break',
  'clients cut off',
  'cut one way',
  'engine away',
  'engine cut off',
  'slow answers',
  'standby away',
  'move leader',
] as const;
export type FaultKind = (typeof faultKinds)[number];

/** One fault. It holds all that is random about it, so that a fault can be left out without a change of the others. */
export interface Fault {
  readonly atMs: number;
  readonly kind: FaultKind;
  /** The machine; or the leader at that time, where `atLeader` is set and one leads. */
  readonly machine: number;
  readonly other: number;
  readonly atLeader: boolean;
  readonly lastsMs: number;
  /** From 0 to 1: its meaning depends on the kind. */
  readonly amount: number;
}

/** A server that starts as an older version. */
export interface OlderServer {
  readonly machine: number;
  /** What that version says to a leader of the commands that it knows: see OlderVersion. */
  readonly newestCommand: number;
  /** From when on it is upgraded, one server at a time; never where this is missing. */
  readonly upgradeAtMs?: number;
  readonly downMs: number;
}

/** All that a seed draws for clients of servers: plain data, which the shrinker reduces and a failure prints. */
export interface ServersScenario {
  readonly shape: 'servers';
  readonly seed: number;
  readonly servers: number;
  /** Clients with one lease each. */
  readonly holders: number;
  /** Clients of keys and transactions. */
  readonly keyClients: number;
  readonly watchClients: number;
  /** How often a request of a client of keys compacts the history. */
  readonly compactChance: number;
  /** The length of the largest values; 0: all are short. */
  readonly largeBytes: number;
  /** How much a server sends on a stream before its client reads. */
  readonly windowBytes: number;
  /** Shortest and longest. */
  readonly ttlMs: readonly [number, number];
  /** How long faults are injected. Then everything is healed. */
  readonly faultsMs: number;
  readonly faults: readonly Fault[];
  /** With one or more, the log was begun by the older version. */
  readonly olderServers: readonly OlderServer[];
  /** With one or more, clients are users. */
  readonly access: readonly AccessStep[];
  readonly engineTrouble: number;
  /** The share of messages that are late. */
  readonly lateShare: number;
  readonly snapshotCount: number;
  readonly isShared: boolean;
  readonly maxPendingCommands: number;
  /** Whether a leader may answer reads by its leader lease. */
  readonly readsByLease: boolean;
}

/** Three values in one transaction: with their previous values they need more than one fragment. */
const largeBytes = 450_000;

/** Where clients are users there are some of each kind. */
const clientsWithUsers = { keyClients: 2, watchClients: 2 };

type Shape = Pick<ServersScenario, 'ttlMs' | 'faultsMs' | 'engineTrouble'> & {
  readonly gapMs: readonly [number, number];
  /** How often a fault hits the leader. */
  readonly atLeader: number;
  readonly crowd?: Pick<ServersScenario, 'keyClients' | 'maxPendingCommands'>;
};

export function serversScenarioOf(seed: number): ServersScenario {
  const random = new SeededRandom(seed);
  const servers = random.pick([1, 1, 2, 3, 3, 3, 3, 5]);
  const isShared = servers > 1 || random.chance(0.2);
  const holders = random.integer(3, 8);
  const shape = shapeOf(random, isShared);
  const { ttlMs, faultsMs, engineTrouble } = shape;
  const faults = faultsOf(random, { servers, isShared }, shape);
  const snapshotCount = random.pick([8, 20, 60, 10_000]);
  const lateShare = random.pick([0, 0.03, 0.03, 0.1]);
  const maxPendingCommands = random.pick([2, 5, 65_536, 65_536]);
  const olderServers = olderServersOf(seed, { servers, faultsMs });
  // A server of the older version knows no users.
  const access = olderServers.length > 0 ? [] : accessStepsOf(seed, faultsMs);
  return {
    shape: 'servers',
    seed,
    servers,
    isShared,
    holders,
    ...keyLoadOf(random),
    ttlMs,
    faultsMs,
    engineTrouble,
    faults,
    olderServers,
    access,
    lateShare,
    snapshotCount,
    maxPendingCommands,
    readsByLease: random.chance(0.5),
    ...shape.crowd,
    ...(access.length > 0 ? clientsWithUsers : {}),
  };
}

/** Clients of keys cost the most, so that many seeds have none. */
function keyLoadOf(random: SeededRandom) {
  const keyClients = random.pick([0, 0, 0, 1, 2, 3]);
  return {
    keyClients,
    watchClients: keyClients === 0 ? 0 : random.integer(0, 2),
    compactChance: random.pick([0, 0.01, 0.05]),
    largeBytes: random.chance(0.15) ? largeBytes : 0,
    windowBytes: random.pick([300, 2_000, 64 * 1024]),
  };
}

function shapeOf(random: SeededRandom, isShared: boolean): Shape {
  const kind = random.next();
  // The engine of an unshared log has no connection that could break.
  if (!isShared) return { ttlMs: [300, 1_500], gapMs: [200, 1_500], faultsMs: 6_000, engineTrouble: 0, atLeader: 1 };
  if (kind < 0.08) {
    // TTLs so long that a missing checkpoint is told from a late one, and a log that often refuses the leader's own.
    const crowd = { keyClients: 3, maxPendingCommands: 2 };
    return { ttlMs: [7_500, 10_000], gapMs: [500, 3_500], faultsMs: 20_000, engineTrouble: 0, atLeader: 0.6, crowd };
  }
  if (kind < 0.2) {
    // The leader fails repeatedly, within the TTL of the leases.
    return { ttlMs: [3_000, 6_000], gapMs: [2_000, 3_500], faultsMs: 14_000, engineTrouble: 0.2, atLeader: 1 };
  }
  const engineTrouble = random.pick([0, 0.3, 1]);
  const faultsMs = random.between(3_000, 7_000);
  if (kind < 0.35) return { ttlMs: [300, 900], gapMs: [200, 2_000], faultsMs, engineTrouble, atLeader: 1 };
  return { ttlMs: [500, 2_500], gapMs: [300, 2_500], faultsMs, engineTrouble, atLeader: 0.6 };
}

/** The share of seeds that begin with older servers. */
const upgradeShare = 0.2;

/** Has random numbers of its own: the rest of a scenario is the same without older servers. */
function olderServersOf(
  seed: number,
  { servers, faultsMs }: Pick<ServersScenario, 'servers' | 'faultsMs'>,
): readonly OlderServer[] {
  const random = namedRandom(seed, 'older servers');
  if (!random.chance(upgradeShare)) return [];
  const machines = Array.from({ length: servers }, (_, machine) => ({ machine, order: random.next() }));
  machines.sort((one, other) => one.order - other.order);
  const older = machines.slice(0, random.chance(0.6) ? servers : random.integer(1, servers));
  // Some upgrades are left half done: the cluster stays as it is.
  const upgraded = random.chance(0.65) ? older.length : Math.ceil(random.next() * (older.length - 1));
  const newestCommand = random.pick([0, newestOlderKind]);
  // Between two upgrades there is time for faults, which make servers of both versions lead.
  const gapMs = faultsMs / servers;
  let upgradeAtMs = random.between(200, gapMs);
  return older.map(({ machine }, at): OlderServer => {
    const downMs = random.between(20, 1_500);
    if (at >= upgraded) return { machine, newestCommand, downMs };
    upgradeAtMs += random.between(0.5 * gapMs, 1.5 * gapMs);
    return { machine, newestCommand, upgradeAtMs, downMs };
  });
}

/** Short, as long as some leases live, or so long that a server falls behind the oldest entry of the log. */
function lastsMsOf(random: SeededRandom): number {
  const kind = random.next();
  if (kind < 0.45) return random.between(20, 900);
  return kind < 0.85 ? random.between(900, 4_000) : random.between(4_000, 7_000);
}

/** The faults that a server alone on an unshared log may have. */
const faultsAlone: ReadonlySet<FaultKind> = new Set([
  'stall',
  'busy',
  'suspend',
  'kill',
  'close',
  'wall step',
  'clients cut off',
]);

/** Each seed draws which kinds of faults it has (swarm testing), so that a rare pair is not lost among all others. */
export function faultsOf(
  random: SeededRandom,
  { servers, isShared }: Pick<ServersScenario, 'servers' | 'isShared'>,
  shape: Pick<Shape, 'faultsMs' | 'gapMs' | 'atLeader'>,
): readonly Fault[] {
  const { faultsMs, gapMs, atLeader } = shape;
  const possible = faultKinds.filter((kind) => isShared || faultsAlone.has(kind));
  const kinds = possible.filter(() => random.chance(0.5));
  if (kinds.length === 0) kinds.push(random.pick(possible));
  const faults: Fault[] = [];
  let atMs = random.between(0, 1_500);
  for (;;) {
    atMs += random.between(...gapMs);
    if (atMs >= faultsMs) return faults;
    faults.push({
      atMs,
      kind: random.pick(kinds),
      machine: random.below(servers),
      other: random.below(servers),
      atLeader: random.chance(atLeader),
      lastsMs: lastsMsOf(random),
      amount: random.next(),
    });
  }
}
