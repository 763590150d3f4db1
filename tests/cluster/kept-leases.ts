import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { Code, Refusal } from '../../conformance/client/refusal.ts';
import { eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';

interface Renewals {
  readonly member: ClusterMember;
  readonly stream: KeepAliveStream;
  readonly ids: bigint[];
  isOver: boolean;
}

/** The delay before a client whose stream ended tries the next server. */
const reopenDelayMs = 200;
/** The number of renewals within a TTL. */
const renewalsPerTtl = 3;

/**
 * Many leases, each with a key, renewed through all servers over one long-lived stream to each. When a server is gone,
 * its leases move to another. A running server must not end its stream, unless it has no leader for too long.
 */
export class KeptLeases {
  readonly ids: bigint[] = [];
  /** Leases that a renewal reported as gone. */
  readonly lost: bigint[] = [];
  /** Servers that ended their stream although they were alive, with the code and the reason. */
  readonly brokenStreams: string[] = [];
  /** How often a running server ended its stream because it had had no leader for too long. */
  leaderless = 0;
  acknowledged = 0;
  readonly #acknowledgedMs = new Map<bigint, number>();
  readonly #ttlMs: number;
  readonly #members: () => readonly ClusterMember[];
  #streams: Renewals[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** `members`: the servers that can receive renewals now. */
  constructor(ttlMs: number, members: () => readonly ClusterMember[]) {
    this.#ttlMs = ttlMs;
    this.#members = members;
  }

  /** Grants so many leases, through each server in turn, and renews them from now on. */
  async keep(count: number, firstId: bigint): Promise<void> {
    const members = this.#members();
    this.#streams = members.map((member) => this.#open(member, []));
    this.#timer = setInterval(() => this.#renewAll(), this.#ttlMs / renewalsPerTtl);
    await grantMany({ members, count, firstId, ttlMs: this.#ttlMs, prefix: 'kept' }, (id, at) => {
      if (this.ids.includes(id)) return;
      this.ids.push(id);
      this.#streams[at % this.#streams.length]?.ids.push(id);
    });
  }

  stop(): void {
    clearInterval(this.#timer);
    const streams = this.#streams;
    this.#streams = [];
    for (const { stream } of streams) stream.close();
  }

  /** Resolves when a renewal of each lease has been acknowledged since the call. Throws if one is gone. */
  async allRenewed(): Promise<void> {
    const fromMs = performance.now();
    await eventually('every kept lease is renewed', async () => {
      const renewed = this.ids.every((id) => (this.#acknowledgedMs.get(id) ?? 0) > fromMs);
      return renewed || this.lost.length > 0 ? true : undefined;
    });
    if (this.lost.length > 0) throw new Error(`${this.lost.length} renewed leases were lost`);
  }

  /**
   * Throws if a lease is gone, or if a running server ended a stream for another reason than to send its client to
   * another server. `through`: the server that is asked.
   */
  async check(through: ClusterMember): Promise<void> {
    const other = this.brokenStreams.filter((each) => !each.includes(`: ${Code.unavailable} `));
    if (other.length > 0) throw new Error(`streams of renewals were ended: ${other.join('; ')}`);
    if (this.lost.length > 0) throw new Error(`${this.lost.length} renewed leases were lost`);
    const { leases } = await through.lease.leaseLeases({});
    const alive = new Set(leases.map(({ ID }) => ID));
    const gone = this.ids.filter((id) => !alive.has(id));
    if (gone.length > 0) throw new Error(`${gone.length} renewed leases are gone`);
  }

  #open(member: ClusterMember, ids: bigint[]): Renewals {
    const renewals: Renewals = { member, stream: new KeepAliveStream(member.client), ids, isOver: false };
    void this.#read(renewals);
    void renewals.stream.ended.then(({ code, details }) => {
      renewals.isOver = true;
      if (!this.#streams.includes(renewals)) return;
      if (member.isAlive) this.brokenStreams.push(`${member.name}: ${code} ${details}`);
      setTimeout(() => this.#moveOn(renewals), reopenDelayMs);
    });
    return renewals;
  }

  /** A client whose stream ended goes to the next running server, as etcd's clients do, and renews at once. */
  #moveOn(from: Renewals): void {
    const at = this.#streams.indexOf(from);
    if (at < 0) return;
    const standing = this.#members().filter(({ isAlive }) => isAlive);
    const next = standing[(standing.indexOf(from.member) + 1) % Math.max(1, standing.length)];
    if (next === undefined) {
      setTimeout(() => this.#moveOn(from), reopenDelayMs);
      return;
    }
    const renewals = this.#open(next, from.ids);
    this.#streams[at] = renewals;
    for (const id of renewals.ids) renewals.stream.send(id);
  }

  async #read(renewals: Renewals): Promise<void> {
    while (!renewals.isOver) {
      // During a time without a leader, renewals wait without an answer.
      const reply = await renewals.stream.next().catch(() => undefined);
      if (reply === undefined) continue;
      this.acknowledged += 1;
      if (reply.TTL === 0n) this.lost.push(reply.ID);
      else this.#acknowledgedMs.set(reply.ID, performance.now());
    }
  }

  #renewAll(): void {
    for (const { stream, ids, isOver } of this.#streams) if (!isOver) for (const id of ids) stream.send(id);
  }
}

export interface Grants {
  readonly members: readonly ClusterMember[];
  readonly count: number;
  readonly firstId: bigint;
  readonly ttlMs: number;
  /** The key of a lease: prefix/id. */
  readonly prefix: string;
}

/** Limit on concurrent grants: a thousand waiting requests would take seconds on a small machine. */
const grantsAtOnce = 32;
const attempts = 5;

/** Grants leases with a key each, through all servers in turn; `granted` is called when a lease exists. */
export async function grantMany(
  { members, count, firstId, ttlMs, prefix }: Grants,
  granted: (id: bigint, at: number, sentMs: number) => void,
): Promise<void> {
  const one = async (at: number): Promise<void> => {
    const id = firstId + BigInt(at);
    const { lease, kv } = members[at % members.length] as ClusterMember;
    const key = Buffer.from(`${prefix}/${id}`);
    for (let round = 1; ; round += 1) {
      const sentMs = performance.now();
      await persistently(async (attempt) => {
        await lease.leaseGrant({ ID: id, TTLMs: BigInt(ttlMs) }).catch((error: unknown) => {
          const isThere = error instanceof Refusal && error.details === 'etcdserver: lease already exists';
          if (attempt === 1 || !isThere) throw error;
        });
      });
      granted(id, at, sentMs);
      try {
        // Each attempt has its own value: a value that occurs twice was written twice by the servers.
        await persistently((attempt) => kv.put({ key, value: Buffer.from(`${id} ${round}.${attempt}`), lease: id }));
        return;
      } catch (error) {
        // On a machine that is busy for longer than the TTL, the lease has expired before its key was put.
        const hasEnded = error instanceof Refusal && error.details === 'etcdserver: requested lease not found';
        if (!hasEnded || performance.now() - sentMs < ttlMs || round === attempts) throw error;
      }
    }
  };
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: Math.min(count, grantsAtOnce) }, lane));
}

/** A request whose outcome a busy machine could not report in time is repeated. */
async function persistently(request: (attempt: number) => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await request(attempt);
      return;
    } catch (error) {
      const isPassing = error instanceof Refusal && error.code === Code.unavailable;
      if (!isPassing || attempt === attempts) throw error;
    }
  }
}
