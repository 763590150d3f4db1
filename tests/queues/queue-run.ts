import { etcdserverpb, v3lockpb } from '@tenure/protocol';
import { SeededRandom } from '@tenure/test-support';
import { Code, Refusal } from '../../conformance/client/refusal.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { type Cluster, eventually } from '../cluster/cluster.ts';
import { LastingWatch } from '../cluster/lasting-watch.ts';
import { isOfOutage } from './outage.ts';
import { type ClaimedHold, judgeHolds } from './queue-judge.ts';

/** What a client does once it waits: takes its turn, goes away, or loses its lease. */
type Fate = 'takes its turn' | 'vanishes' | 'loses its lease';

interface Waiter {
  readonly fate: Fate;
  /** The server through which it waits now, and its lease. */
  member: ClusterMember;
  lease: bigint;
}

export interface QueueRunOptions {
  readonly waiters: number;
  readonly seed: number;
}

/** Long enough for no lease to end by itself. */
const ttlSeconds = 3_600n;
const callDeadlineMs = 600_000;
const otherDeadlineMs = 10_000;
const patienceMs = 600_000;
const { CREATE } = etcdserverpb.RangeRequest_SortTarget;
const { ASCEND } = etcdserverpb.RangeRequest_SortOrder;
const { lock: lockMethod, unlock: unlockMethod } = v3lockpb.Lock.method;

/**
 * Many clients that take one lock through all servers, all at once behind a key that the run holds. Some go away while
 * they wait, or lose their lease. A client whose call fails, for its server was killed or had no leader, gives up its
 * lease and comes again with another, until it has held the lock.
 */
export class QueueRun {
  readonly #cluster: Cluster;
  readonly #name: string;
  readonly #random: SeededRandom;
  readonly #waiters: Waiter[] = [];
  readonly #holds: ClaimedHold[] = [];
  readonly #watch: LastingWatch;
  readonly #fates: readonly Fate[];
  #firstKey = '';
  #inside = 0;
  /** How many have held the lock for a turn. */
  turns = 0;
  /** Waiters that were told that their lease has ended. */
  expired = 0;
  vanished = 0;

  constructor(cluster: Cluster, name: string, { waiters, seed }: QueueRunOptions) {
    this.#cluster = cluster;
    this.#name = name;
    this.#random = new SeededRandom(seed);
    this.#watch = new LastingWatch(() => cluster.members, 0);
    this.#fates = Array.from({ length: waiters }, (_, at) =>
      at % 10 === 3 ? 'vanishes' : at % 10 === 7 ? 'loses its lease' : 'takes its turn',
    );
  }

  get takers(): number {
    return this.#fates.filter((fate) => fate === 'takes its turn').length;
  }

  /** All wait, and some are gone already. Resolves when the first may begin. `over`: all have had their turn. */
  async begin(): Promise<{ readonly over: Promise<unknown> }> {
    this.#firstKey = `${this.#name}/first`;
    await this.#any((member) => member.put(this.#firstKey, ''));
    const over = Promise.all(this.#fates.map((fate) => this.#wait(fate)));
    // Its own errors come to the caller with `over`.
    over.catch(() => undefined);
    const gone = this.#fates.length - this.takers;
    await Promise.race([
      over,
      eventually(
        'all wait, and all others are gone',
        async () => ((await this.#queued()) === this.takers + 1 && this.expired + this.vanished === gone) || undefined,
        patienceMs,
      ),
    ]);
    return { over };
  }

  async go(): Promise<void> {
    await this.#any((member) => member.kv.deleteRange({ key: Buffer.from(this.#firstKey) }));
  }

  async untilTurns(count: number, over: Promise<unknown>): Promise<void> {
    const reached = eventually('turns', async () => this.turns >= count || undefined, patienceMs);
    await Promise.race([reached, over.then(() => reached)]);
  }

  /** Throws unless each reply was true of the store, and no key is left. */
  async check(): Promise<void> {
    if ((await this.#queued()) !== 0) throw new Error('keys of the queue are left');
    const last = await this.#any((member) => member.put('end', this.#name));
    await this.#watch.seen(({ revision }) => revision >= last);
    const queue = this.#watch.events.filter(({ key }) => key.startsWith(`${this.#name}/`));
    judgeHolds(queue, this.#holds);
  }

  stop(): void {
    this.#watch.stop();
  }

  async #wait(fate: Fate): Promise<void> {
    const waiter: Waiter = { fate, member: this.#member(), lease: 0n };
    this.#waiters.push(waiter);
    for (let isDone = false; !isDone;) {
      waiter.lease = await this.#grant();
      waiter.member = this.#member();
      isDone = await this.#attempt(waiter);
      if (!isDone) await this.#revoke(waiter.lease);
    }
  }

  /** False if the client has to come again. */
  async #attempt(waiter: Waiter): Promise<boolean> {
    const { fate, member, lease } = waiter;
    const deadlineMs = fate === 'vanishes' ? this.#random.integer(20, 1_500) : callDeadlineMs;
    const ending = fate === 'loses its lease' ? this.#revokeLater(lease) : undefined;
    try {
      const reply = await member.client.unary(lockMethod, { name: Buffer.from(this.#name), lease }, { deadlineMs });
      const key = Buffer.from(reply.key).toString();
      this.#holds.push({ key, revision: Number(reply.header?.revision) });
      if (fate !== 'takes its turn') throw new Error(`${key} held, though the first key is there`);
      await this.#takeTurn(key);
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (fate === 'vanishes' && error.code === Code.deadlineExceeded) {
        this.vanished += 1;
        return true;
      }
      if (error.code === Code.unknown && error.details === 'mutex: session is expired') {
        if (fate !== 'loses its lease') throw error;
        this.expired += 1;
        return true;
      }
      if (!isOfOutage(error)) throw error;
      return false;
    } finally {
      await ending;
    }
  }

  /** Alone, with the oldest key. */
  async #takeTurn(key: string): Promise<void> {
    this.#inside += 1;
    const range = { key: Buffer.from(`${this.#name}/`), rangeEnd: Buffer.from(`${this.#name}0`) };
    const oldest = { ...range, limit: 1n, sortTarget: CREATE, sortOrder: ASCEND };
    const { kvs } = await this.#any((member) => member.kv.range(oldest, { deadlineMs: otherDeadlineMs }));
    const found = Buffer.from(kvs[0]?.key ?? []).toString();
    if (found !== key || this.#inside !== 1) throw new Error(`${key} holds beside ${found}: ${this.#inside} hold`);
    this.#inside -= 1;
    this.turns += 1;
    const request = { key: Buffer.from(key) };
    await this.#any((member) => member.client.unary(unlockMethod, request, { deadlineMs: otherDeadlineMs }));
  }

  async #revokeLater(lease: bigint): Promise<void> {
    const key = Buffer.from(`${this.#name}/${lease.toString(16)}`);
    await eventually('the key of a lease', async () => {
      const { count } = await this.#member().kv.range({ key, countOnly: true });
      return count > 0n || undefined;
    });
    await this.#revoke(lease);
  }

  #queued(): Promise<number> {
    const range = { key: Buffer.from(`${this.#name}/`), rangeEnd: Buffer.from(`${this.#name}0`), countOnly: true };
    return this.#any(async (member) => Number((await member.kv.range(range, { deadlineMs: otherDeadlineMs })).count));
  }

  async #grant(): Promise<bigint> {
    const request = { TTL: ttlSeconds };
    return (await this.#any((member) => member.lease.leaseGrant(request, { deadlineMs: otherDeadlineMs }))).ID;
  }

  async #revoke(ID: bigint): Promise<void> {
    await this.#any(async (member) => {
      try {
        await member.lease.leaseRevoke({ ID }, { deadlineMs: otherDeadlineMs });
      } catch (error) {
        // An earlier attempt has revoked it.
        if (!(error instanceof Refusal) || error.code !== Code.notFound) throw error;
      }
      return true;
    });
  }

  #member(): ClusterMember {
    return this.#random.pick(this.#cluster.members);
  }

  /** Asks one server after another: what is asked may be done twice. */
  #any<Result extends {}>(ask: (member: ClusterMember) => Promise<Result>): Promise<Result> {
    return eventually('a server answers', () => ask(this.#member()), patienceMs);
  }
}
