import { CuttingProxy, freePort } from '@tenure/test-support';
import { Cluster } from './cluster.ts';
import type { ClusterMember, MemberOptions } from './cluster-member.ts';
import type { TestedEngine } from './tested-engine.ts';

interface Lines {
  /** Between this server and the engine. */
  readonly engine: CuttingProxy;
  /** Between the other servers and this one. Clients of the tests bypass it. */
  readonly peers: CuttingProxy;
  readonly listen: string;
}

/** The options of all servers. */
export interface CommonOptions {
  readonly flags?: readonly string[];
  /** The environment of the server with that name. */
  readonly envOf?: (name: string) => Readonly<Record<string, string>>;
}

/** Three servers on one engine. The network between all of them can be cut. */
export class FaultyCluster {
  readonly engine: TestedEngine;
  readonly servers: Cluster;
  readonly #lines: ReadonlyMap<string, Lines>;
  readonly #common: CommonOptions;

  private constructor(
    engine: TestedEngine,
    servers: Cluster,
    lines: ReadonlyMap<string, Lines>,
    common: CommonOptions,
  ) {
    this.engine = engine;
    this.servers = servers;
    this.#lines = lines;
    this.#common = common;
  }

  /** Takes over the engine: it is disposed of with the servers. */
  static async start(engine: TestedEngine, common: CommonOptions = {}): Promise<FaultyCluster> {
    const lines = new Map<string, Lines>();
    for (const name of ['s1', 's2', 's3']) {
      const port = await freePort();
      const [toEngine, peers] = await Promise.all([CuttingProxy.before(engine.port), CuttingProxy.before(port)]);
      lines.set(name, { engine: toEngine, peers, listen: `127.0.0.1:${port}` });
    }
    const options = [...lines].map(([name, line]) => optionsOf(engine, name, line, common));
    try {
      return new FaultyCluster(engine, await Cluster.start(options), lines, common);
    } catch (error) {
      await engine.dispose();
      throw error;
    }
  }

  /** The network from a server to the engine. */
  engineOf({ name }: ClusterMember): CuttingProxy {
    return this.#linesOf(name).engine;
  }

  /** The network from the other servers to this one. */
  peersOf({ name }: ClusterMember): CuttingProxy {
    return this.#linesOf(name).peers;
  }

  /** The running servers other than this one. */
  others(out: ClusterMember): ClusterMember[] {
    return this.servers.members.filter((member) => member !== out);
  }

  /** Starts a server that was stopped. */
  restart(name: string): Promise<ClusterMember> {
    return this.servers.join(optionsOf(this.engine, name, this.#linesOf(name), this.#common));
  }

  async dispose(): Promise<void> {
    await this.servers.stop();
    for (const { engine, peers } of this.#lines.values()) await Promise.all([engine.close(), peers.close()]);
    await this.engine.dispose();
  }

  #linesOf(name: string): Lines {
    const lines = this.#lines.get(name);
    if (lines === undefined) throw new Error(`there is no server ${name}`);
    return lines;
  }
}

function optionsOf(tested: TestedEngine, name: string, { engine, peers, listen }: Lines, common: CommonOptions) {
  const options: MemberOptions = {
    name,
    listen,
    env: common.envOf?.(name) ?? {},
    engine: tested.urlAt(engine.port),
    flags: ['--advertise-client-urls', `http://127.0.0.1:${peers.port}`, ...(common.flags ?? [])],
  };
  return options;
}
