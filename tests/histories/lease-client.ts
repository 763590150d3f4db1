import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { Code, Refusal } from '../../conformance/client/refusal.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { revisionOf, type KvClientOptions } from './kv-client.ts';
import type { LeaseInput } from './lease-operation.ts';
import type { Outcome } from './operation.ts';
import { timed } from './recorded-history.ts';

const deadlineMs = 2_000;
const ttlMs = { min: 1_000, max: 3_000 };
const pauseMs = { min: 4, max: 24 };
/** Leases that all clients use at the same time. */
const sharedLeases = 6;
/** The ids of a client are between its number times this and the next multiple. */
const idsPerClient = 1_000_000;

export interface SharedLease {
  readonly id: bigint;
  /** Most leases are renewed by all clients all the time; some are left alone until they expire. */
  readonly isRenewed: boolean;
}

/** The result of one call about a lease. */
interface Told {
  readonly alive: boolean;
  readonly revision: number | undefined;
}

/** Grants, renews, queries, uses and revokes leases that it shares with other clients, each time through any server. */
export class LeaseClient {
  readonly #options: KvClientOptions;
  readonly #pool: Map<bigint, SharedLease>;
  readonly #streams = new Map<ClusterMember, KeepAliveStream>();
  #count = 0;

  /** `pool`: the leases that all clients know, because a grant was acknowledged. */
  constructor(options: KvClientOptions, pool: Map<bigint, SharedLease>) {
    this.#options = options;
    this.#pool = pool;
  }

  async run(isOver: () => boolean): Promise<void> {
    const { random, members } = this.#options;
    while (!isOver()) {
      const standing = members();
      if (standing.length > 0) await this.#call(random.pick(standing));
      await new Promise((resolve) => setTimeout(resolve, random.integer(pauseMs.min, pauseMs.max)));
    }
    for (const stream of this.#streams.values()) stream.close();
  }

  async #call(member: ClusterMember): Promise<void> {
    const { random } = this.#options;
    if (this.#pool.size < sharedLeases) return this.#grant(member);
    const { id, isRenewed } = random.pick([...this.#pool.values()]);
    const roll = random.integer(0, 99);
    if (roll < 4) return this.#revoke(member, id);
    if (roll < 16) return this.#attach(member, id);
    if (roll < 35 || !isRenewed) return this.#ask(member, id);
    return this.#renew(member, id);
  }

  async #grant(member: ClusterMember): Promise<void> {
    const { random, number } = this.#options;
    this.#count += 1;
    const id = BigInt(number * idsPerClient + this.#count);
    const input = { kind: 'grant', id, ttlMs: random.integer(ttlMs.min, ttlMs.max) } as const;
    const outcome = await this.#record(member, input, async () => {
      const { header } = await member.lease.leaseGrant({ ID: id, TTLMs: BigInt(input.ttlMs) }, { deadlineMs });
      return { alive: true, revision: revisionOf(header) };
    });
    if (outcome.kind === 'known') this.#pool.set(id, { id, isRenewed: random.chance(0.7) });
  }

  async #renew(member: ClusterMember, id: bigint): Promise<void> {
    let stream = this.#streams.get(member);
    if (stream === undefined) this.#streams.set(member, (stream = new KeepAliveStream(member.client)));
    const answered = stream;
    const outcome = await this.#record(member, { kind: 'renew', id }, async () => {
      const reply = await within(deadlineMs, answered.renew(id));
      return { alive: reply.TTL > 0n, revision: revisionOf(reply.header) };
    });
    if (outcome.kind === 'known') return;
    // A late answer must not be taken for the answer to a later request.
    stream.close();
    this.#streams.delete(member);
  }

  async #revoke(member: ClusterMember, id: bigint): Promise<void> {
    await this.#record(member, { kind: 'revoke', id }, async () => {
      const revoked = await unlessGone(member.lease.leaseRevoke({ ID: id }, { deadlineMs }));
      return { alive: revoked !== undefined, revision: revoked === undefined ? undefined : revisionOf(revoked.header) };
    });
  }

  async #ask(member: ClusterMember, id: bigint): Promise<void> {
    await this.#record(member, { kind: 'timeToLive', id }, async () => {
      const { header, TTL } = await member.lease.leaseTimeToLive({ ID: id }, { deadlineMs });
      return { alive: TTL >= 0n, revision: revisionOf(header) };
    });
  }

  /** Recorded twice: as evidence about the lease, and as the put that it is. */
  async #attach(member: ClusterMember, id: bigint): Promise<void> {
    const { number: client, history } = this.#options;
    this.#count += 1;
    const key = `leased/${client}-${this.#count}`;
    const request = { key: Buffer.from(key), value: Buffer.from(key), lease: id };
    const server = member.name;
    const input = { kind: 'put', writes: [[key, key]], lease: id } as const;
    const put = await timed(() => unlessGone(member.kv.put(request, { deadlineMs })));
    const { outcome, ...times } = put;
    if (outcome.kind !== 'known') {
      history.kv.push({ client, server, input, ...times, outcome });
      return;
    }
    const isGone = outcome.output === undefined;
    const revision = isGone ? undefined : revisionOf(outcome.output?.header);
    const wrote:
      | Outcome<never>
      | { kind: 'known'; output: { revision: number; changed: true; seen: Map<string, null> } } =
      revision === undefined
        ? { kind: 'failed' }
        : { kind: 'known', output: { revision, changed: true, seen: new Map() } };
    history.kv.push({ client, server, input, ...times, outcome: wrote });
    await this.#record(member, { kind: 'attach', id, key }, () => Promise.resolve({ alive: !isGone, revision }), times);
  }

  async #record(
    member: ClusterMember,
    input: LeaseInput,
    call: () => Promise<Told>,
    times?: { readonly calledMs: number; readonly returnedMs: number },
  ): Promise<Outcome<Told>> {
    const { number: client, history } = this.#options;
    const server = member.name;
    const result = { ...(await timed(call)), ...times };
    history.leases.push({ client, server, input, ...result });
    const { outcome, calledMs, returnedMs } = result;
    if (outcome.kind !== 'known') return outcome;
    const { alive, revision } = outcome.output;
    if (revision !== undefined)
      history.headers.push({ client, server, call: input.kind, calledMs, returnedMs, revision });
    if (!alive || input.kind === 'revoke') this.#pool.delete(input.id);
    return outcome;
  }
}

/** Undefined when the server reports that the lease does not exist, which is an answer too. */
async function unlessGone<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Refusal && error.code === Code.notFound) return undefined;
    throw error;
  }
}

async function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
