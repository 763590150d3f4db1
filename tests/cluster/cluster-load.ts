import { checkAfterwards } from './afterwards.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { KeptLeases } from './kept-leases.ts';
import { LastingWatch } from './lasting-watch.ts';
import { RoamingWriters } from './roaming-writers.ts';

const writers = 4;

export interface LoadOptions {
  /** The servers that are written through: all that run, unless it is given. Leases are renewed through all. */
  readonly writeThrough?: () => readonly ClusterMember[];
  readonly keptLeases?: number;
  readonly keptTtlMs?: number;
}

/** What clients of a cluster do while something goes wrong, and what they compare when it is over. */
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

  /** `seed` keeps the values and the leases of several loads on one cluster apart. */
  static async start(cluster: Cluster, seed: number, options: LoadOptions = {}): Promise<ClusterLoad> {
    const { writeThrough = () => cluster.members, keptLeases = 60, keptTtlMs = 6_000 } = options;
    const load = new ClusterLoad(cluster, writeThrough, seed, keptTtlMs);
    await load.leases.keep(keptLeases, BigInt(seed * 10_000));
    return load;
  }

  get acknowledged(): number {
    return this.#writers.acknowledged.length;
  }

  /** The watch that began on that server, which ran when the load was started. */
  watchOf(member: ClusterMember): LastingWatch {
    const watch = this.watches[this.#began.indexOf(member)];
    if (watch === undefined) throw new Error(`${member.name} did not run when the load was started`);
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

  /** Ends the load. Throws unless all renewed leases still are, and all holds that must hold afterwards. */
  async finish(): Promise<void> {
    await this.leases.allRenewed();
    await this.#writers.stop();
    await this.leases.check(await this.#cluster.leader());
    this.leases.stop();
    await checkAfterwards(this.#cluster, this.watches, this.#writers.acknowledged);
    await this.stop();
  }

  /** Ends what is left of it. May be called at any time. */
  async stop(): Promise<void> {
    this.leases.stop();
    for (const watch of this.watches) watch.stop();
    await this.#writers.stop();
  }
}
