import { PatroniNode } from '@tenure/test-support';
import { eventually } from '../cluster/cluster.ts';

interface PairOptions {
  readonly stores: readonly string[];
  readonly ttlSeconds: number;
}

/** Patroni 3.0 says master, later versions say primary. */
const primaryRoles: readonly string[] = ['master', 'primary'];

/** Two nodes of Patroni. */
export class PatroniPair {
  readonly #nodes: readonly PatroniNode[];
  #written = 0;

  private constructor(nodes: readonly PatroniNode[]) {
    this.#nodes = nodes;
  }

  static async create({ stores, ttlSeconds }: PairOptions): Promise<PatroniPair> {
    const options = { stores, ttlSeconds, loopSeconds: 2 };
    return new PatroniPair(await Promise.all(['one', 'two'].map((name) => PatroniNode.create({ name, ...options }))));
  }

  async primary(withinMs: number): Promise<PatroniNode> {
    return (await this.roles(withinMs, 1))[0];
  }

  /** The primary and the standby, as soon as one node says that it is the primary and `answering` answer. */
  roles(withinMs: number, answering = this.#nodes.length): Promise<[PatroniNode, PatroniNode]> {
    return this.#eventually('one node is the primary', withinMs, async () => {
      const states = await Promise.all(this.#nodes.map((node) => node.state().catch(() => undefined)));
      const at = states.findIndex((state) => state?.state === 'running' && primaryRoles.includes(state.role));
      const answers = states.filter((state) => state?.state === 'running').length;
      if (at < 0 || answers < answering) return undefined;
      return [this.#nodes[at]!, this.#nodes[1 - at]!];
    });
  }

  async standbyStreams(withinMs: number): Promise<void> {
    await this.#eventually('the standby streams from the primary', withinMs, async () => {
      const states = await Promise.all(this.#nodes.map((node) => node.state()));
      const streams = states.some(({ replication = [] }) => replication.some(({ state }) => state === 'streaming'));
      return streams ? true : undefined;
    });
  }

  /** A row that the primary acknowledges is on the standby, with all earlier ones. */
  async writesArrive(withinMs: number): Promise<void> {
    const [primary, standby] = await this.roles(withinMs);
    await primary.query(`INSERT INTO written VALUES (${(this.#written += 1)})`);
    await this.#eventually('the standby has the row', withinMs, async () => {
      const [row] = await standby.query('SELECT count(DISTINCT value)::integer AS rows FROM written');
      return row?.['rows'] === this.#written ? true : undefined;
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.stop()));
  }

  async #eventually<T>(what: string, withinMs: number, ask: () => Promise<T | undefined>): Promise<T> {
    try {
      return await eventually(what, ask, withinMs);
    } catch (error) {
      const output = this.#nodes.map(({ name, output: text }) => `${name}:\n${text.slice(-4_000)}`).join('\n');
      throw new Error(`${what}: not within ${withinMs} ms\n${output}`, { cause: error });
    }
  }
}
