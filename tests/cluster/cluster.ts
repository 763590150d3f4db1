import { ClusterMember, type MemberOptions } from './cluster-member.ts';

/** The timeout for anything that a cluster does by itself. */
const patienceMs = 60_000;
const pollMs = 20;

/** Resolves with the first answer that is not undefined. Asks again after an error. */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined>,
  withinMs = patienceMs,
): Promise<T> {
  const untilMs = performance.now() + withinMs;
  let last: unknown = 'the condition was never met';
  while (performance.now() < untilMs) {
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new Error(`no success within ${withinMs} ms: ${what}; ${String(last)}`);
}

/** Several servers on one log. */
export class Cluster {
  readonly #members: ClusterMember[] = [];

  static async start(options: readonly MemberOptions[]): Promise<Cluster> {
    const cluster = new Cluster();
    try {
      await Promise.all(options.map((each) => cluster.join(each)));
      await cluster.leader();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** The running servers, ordered by name. */
  get members(): readonly ClusterMember[] {
    return this.#members.filter(({ isAlive }) => isAlive).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** One of the running servers. */
  get pids(): readonly number[] {
    return this.members.map(({ process }) => process.pid);
  }

  /** Starts a server, a new one or one that was stopped. */
  async join(options: MemberOptions): Promise<ClusterMember> {
    const member = await ClusterMember.start(options);
    this.#members.push(member);
    return member;
  }

  /** The server that all given servers name as the leader, itself included, in an epoch after `epochBefore`. */
  leader(asked: readonly ClusterMember[] = this.members, epochBefore = 0n): Promise<ClusterMember> {
    return eventually('all agree on a leader', async () => {
      const views = await Promise.all(asked.map((member) => member.leadership()));
      const agreed = new Set(views.map(({ leader, epoch }) => `${leader} ${epoch}`));
      return agreed.size === 1 ? asked.find((_, at) => views[at]?.leads && views[at].epoch > epochBefore) : undefined;
    });
  }

  async followers(): Promise<ClusterMember[]> {
    const leader = await this.leader();
    return this.members.filter((member) => member !== leader);
  }

  /** Throws unless all servers hold the same content at the same revision; returns that revision. */
  async checkSameState(): Promise<number> {
    const { header } = await (await this.leader()).kv.range({ key: Buffer.from('any') });
    const revision = header?.revision ?? 0n;
    const hashes = await Promise.all(
      this.members.map(async ({ kv, maintenance, name }) => {
        // A linearizable read: afterwards the server has applied everything that the hash must cover.
        await kv.range({ key: Buffer.from('any') });
        const { hash, compactRevision } = await maintenance.hashKV({ revision });
        return { name, hash: `${hash} from ${compactRevision}` };
      }),
    );
    const lines = hashes.map(({ name, hash }) => `${name}: ${hash}`).join(', ');
    if (new Set(hashes.map(({ hash }) => hash)).size !== 1) {
      throw new Error(`the states differ at revision ${revision}: ${lines}`);
    }
    return Number(revision);
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop('SIGKILL')));
  }
}
