import { SeededRandom } from '@tenure/test-support';
import { faultsOf, type Fault } from '../servers-scenario.ts';

/** `kill` also starts another process. `outage`, `loss` and `slow` are faults of the network to the store. */
const faultKinds = ['pause', 'suspend', 'kill', 'step', 'outage', 'loss', 'slow'] as const;
type LibraryFaultKind = (typeof faultKinds)[number];

const uses = ['acquire', 'withLease', 'handle', 'readWrite', 'semaphore', 'election'] as const;

/** One fault of a process that uses the library. It holds all that is random about it. */
export interface LibraryFault {
  readonly atMs: number;
  readonly kind: LibraryFaultKind;
  readonly process: number;
  readonly lastsMs: number;
  /** From 0 to 1: its meaning depends on the kind. */
  readonly amount: number;
  /** A pause begins when the next renewal has been sent: its answer then waits in the socket. */
  readonly isAfterRenewal: boolean;
}

/** All that a seed draws for processes that use the library: plain data. */
export interface LibraryScenario {
  readonly shape: 'library';
  readonly seed: number;
  readonly backend: 'memory' | 'etcd';
  readonly processes: number;
  /** Concurrent callers in each process. */
  readonly callers: number;
  readonly uses: readonly (typeof uses)[number][];
  /** Shortest and longest. */
  readonly ttlMs: readonly [number, number];
  /** How long faults are injected. Then everything is healed. */
  readonly faultsMs: number;
  readonly faults: readonly LibraryFault[];
  /** Only for the etcd backend: its servers, and their faults. */
  readonly servers: number;
  readonly serverFaults: readonly Fault[];
  readonly engineTrouble: number;
  readonly lateShare: number;
  readonly snapshotCount: number;
}

/** Of four seeds, three run the memory backend, which is faster. */
export function libraryScenarioOf(
  seed: number,
  backend: LibraryScenario['backend'] = drawOf(seed, 'backend').chance(0.75) ? 'memory' : 'etcd',
): LibraryScenario {
  const random = drawOf(seed, backend);
  const shortest = random.pick([300, 600, 1_000]);
  const longest = shortest * random.pick([1, 3]);
  const isEtcd = backend === 'etcd';
  // Its calls cost much more.
  const processes = random.integer(2, isEtcd ? 3 : 4);
  const callers = isEtcd && processes > 2 ? 1 : random.integer(1, 2);
  const faultsMs = isEtcd ? 4_000 : 6_000;
  const kinds = faultKinds.filter((kind) => !isEtcd || kind !== 'slow');
  const gapMs = random.between(50, 800);
  const servers = isEtcd ? random.integer(1, 3) : 1;
  const shape = { gapMs: [300, 2_500], faultsMs, atLeader: 0.6 } as const;
  return {
    shape: 'library',
    seed,
    backend,
    processes,
    callers,
    uses: some(random, uses, 0.4),
    ttlMs: [shortest, longest],
    faultsMs,
    faults: random.chance(0.1) ? [] : faultsOfProcesses(random, some(random, kinds, 0.5), gapMs, longest * 1.5),
    servers,
    serverFaults: isEtcd && random.chance(0.7) ? faultsOf(random, { servers, isShared: true }, shape) : [],
    engineTrouble: isEtcd ? random.pick([0, 0, 0.3]) : 0,
    lateShare: isEtcd ? random.pick([0, 0.03, 0.1]) : 0,
    snapshotCount: random.pick([60, 10_000]),
  };

  function faultsOfProcesses(
    from: SeededRandom,
    drawn: readonly LibraryFaultKind[],
    shortestGapMs: number,
    longestMs: number,
  ): readonly LibraryFault[] {
    const faults: LibraryFault[] = [];
    let atMs = 0;
    for (;;) {
      atMs += from.between(shortestGapMs, shortestGapMs * 3);
      if (atMs >= faultsMs) return faults;
      faults.push({
        atMs,
        kind: from.pick(drawn),
        process: from.below(processes),
        lastsMs: from.between(1, longestMs),
        amount: from.next(),
        isAfterRenewal: from.chance(0.5),
      });
    }
  }
}

/** Random numbers for one purpose: those of another never shift them. */
function drawOf(seed: number, purpose: 'backend' | LibraryScenario['backend']): SeededRandom {
  return new SeededRandom(seed * 8 + purpose.length);
}

/** At least one of them. */
function some<T>(random: SeededRandom, all: readonly T[], chance: number): readonly T[] {
  const drawn = all.filter(() => random.chance(chance));
  return drawn.length > 0 ? drawn : [random.pick(all)];
}
