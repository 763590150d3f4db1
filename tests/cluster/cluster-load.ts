import { checkAfterwards } from './invariants.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { KeptLeases } from './kept-leases.ts';
import { LastingWatch } from './lasting-watch.ts';
import { RoamingWriters } from './roaming-writers.ts';

const writers = 4;

export interface LoadOptions {
  /** The servers that receive the writes: all running ones by default. Leases are renewed through all. */
  readonly writeThrough?: () => readonly ClusterMember[];
  readonly keptLeases?: number;
  readonly keptTtlMs?: number;
}

/** The work of clients of a cluster during a fault, and their checks afterwards. */
export class ClusterLoad {
  readonly leases: KeptLeases;
  readonly watches: readonly LastingWatch[];
  readonly #cluster: Cluster;
  readonly #began: readonly ClusterMember[];
  readonly #writers: RoamingWriters;

  private constructor(cluster: Cluster, writeThrough: () => readonly ClusterMember[], seed: number, ttlMs: number) {
    this.#cluster = cluster;
    this.leases = new KeptLeases(ttlMs, () => cluster.members);
    this.#began = cluster.members;
    this.watches = this.#began.map((_, at) => new LastingWatch(() => cluster.members, at));
    this.#writers = new RoamingWriters(writeThrough, writers, seed);
  }

  /** `seed` separates the values and the leases of several loads on one cluster. */
  static async start(cluster: Cluster, seed: number, options: LoadOptions = {}): Promise<ClusterLoad> {
    const { writeThrough = () => cluster.members, keptLeases = 60, keptTtlMs = 6_000 } = options;
    const load = new ClusterLoad(cluster, writeThrough, seed, keptTtlMs);
    await load.leases.keep(keptLeases, BigInt(seed * 10_000));
    return load;
  }

  get acknowledged(): number {
    return this.#writers.acknowledged.length;
  }

  /** The watch that began on that server, which was running when the load was started. */
  watchOf(member: ClusterMember): LastingWatch {
    const watch = this.watches[this.#began.indexOf(member)];
    if (watch === undefined) throw new Error(`${member.name} was not running when the load was started`);
    return watch;
  }

  /** Resolves when so many more writes were acknowledged. */
  async progress(writes: number, withinMs = 60_000): Promise<void> {
    const target = this.acknowledged + writes;
    const untilMs = performance.now() + withinMs;
    while (this.acknowledged < target) {
      if (performance.now() > untilMs) throw new Error(`${this.acknowledged} of ${target} writes after ${withinMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Ends the load. Throws unless all renewed leases still exist and every invariant holds. */
  async finish(): Promise<void> {
    await this.leases.allRenewed();
    await this.#writers.stop();
    await this.leases.check(await this.#cluster.leader());
    this.leases.stop();
    await checkAfterwards(this.#cluster, this.watches, this.#writers.acknowledged);
    await this.stop();
  }

  /** Ends the rest of it. May be called at any time. */
  async stop(): Promise<void> {
    this.leases.stop();
    for (const watch of this.watches) watch.stop();
    await this.#writers.stop();
  }
}
