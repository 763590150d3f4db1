import { namedRandom } from '../world/named-random.ts';

/** How a disk betrays what it acknowledged. A machine with an honest disk must start again after any crash. */
export type Lie = 'lost write' | 'misdirected write' | 'bit flipped at rest' | 'bit flipped on read';
const lies: readonly Lie[] = ['lost write', 'misdirected write', 'bit flipped at rest', 'bit flipped on read'];

export type Crash = 'power lost' | 'killed';

/** One run of the server's process, which ends like this unless it fails before. */
export interface PlannedRun {
  readonly ending: Crash | 'closed';
  /** When the power is lost: in the middle of the operation after so many of them. */
  readonly afterOperations: number;
  /** When the process is killed or closed. */
  readonly afterMs: number;
  /** The process crashes as soon as it has read the log: the next one must find the same. */
  readonly crashesWhenOpen: boolean;
  /** The system reads the files from the disk again, although only the process has ended. */
  readonly evictsFiles: boolean;
  /** Until the next run. */
  readonly restartMs: number;
}

/** Other files take the room of the disk for a while. */
export interface FullDisk {
  readonly atMs: number;
  readonly lastsMs: number;
  readonly roomBytes: number;
}

/** One server alone on a simulated disk: plain data, as all scenarios. */
export interface DiskScenario {
  readonly shape: 'disk';
  readonly seed: number;
  readonly clients: number;
  /** The longest pause of a client between two requests. */
  readonly longestPauseMs: number;
  /** How long there are requests and faults. Then everything is healed. */
  readonly loadMs: number;
  /** So small that segments, snapshots and trims follow each other quickly. */
  readonly maxSegmentBytes: number;
  readonly preallocateBytes: number;
  readonly maxFollowBytes: number;
  readonly snapshotCount: number;
  readonly runs: readonly PlannedRun[];
  /** How the last run ends, when everything is healed. */
  readonly lastCrash: Crash;
  readonly fullDisks: readonly FullDisk[];
  /** How many of a thousand operations fail. */
  readonly failedReads: number;
  readonly failedWrites: number;
  readonly failedSyncs: number;
  readonly shortWrites: number;
  readonly slowOperations: number;
  readonly lie: Lie | 'none';
  /** How many of a thousand operations of its kind lie. */
  readonly liesPerThousand: number;
}

/** A run and the pause behind it last this long at least on average: more runs are not needed. */
const averageRunMs = 60;

export function diskScenarioOf(seed: number): DiskScenario {
  const random = namedRandom(seed, 'disk scenario');
  const loadMs = random.between(500, 2_500);
  const rate = (): number => (random.chance(0.35) ? 10 ** random.between(-0.3, 1) : 0);
  const lie = random.chance(0.4) ? random.pick(lies) : 'none';
  const runs = Array.from({ length: Math.ceil(loadMs / averageRunMs) }, (): PlannedRun => {
    return {
      ending: random.pick(['power lost', 'power lost', 'killed', 'closed']),
      afterOperations: random.integer(0, random.pick([10, 60, 300])),
      afterMs: random.between(1, 1_000),
      crashesWhenOpen: random.chance(0.2),
      evictsFiles: random.chance(0.3),
      restartMs: random.between(10, 100),
    };
  });
  return {
    shape: 'disk',
    seed,
    clients: random.integer(1, 3),
    longestPauseMs: random.pick([30, 80, 200]),
    loadMs,
    maxSegmentBytes: random.pick([600, 2_000, 8_000]),
    preallocateBytes: random.pick([0, 300, 2_000]),
    maxFollowBytes: random.pick([1, 500, 1024 * 1024]),
    snapshotCount: random.integer(4, 40),
    runs,
    lastCrash: random.pick(['power lost', 'killed']),
    fullDisks: random.chance(0.3)
      ? [{ atMs: random.between(0, loadMs), lastsMs: random.between(100, 1_000), roomBytes: random.below(3_000) }]
      : [],
    failedReads: 5 * rate(),
    failedWrites: 2 * rate(),
    failedSyncs: 10 * rate(),
    shortWrites: 10 * rate(),
    slowOperations: rate(),
    lie,
    liesPerThousand: lie === 'none' ? 0 : lie === 'bit flipped on read' ? 50 : 40,
  };
}
