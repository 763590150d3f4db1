import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import type { SeededRandom } from '@tenure/test-support';
import type { LeaseInput } from './lease-operation.ts';
import { timed, type RecordedHistory } from './recorded-history.ts';

const ttlMs = 30_000;
const renewedForMs = { min: 2, max: 12 };

/**
 * Grants a lease through one server, renews it through all of them as fast as they answer, and revokes it through one
 * in the meantime. Ends when every server has reported the lease as gone. All calls are recorded.
 */
export class RevokeRace {
  readonly #members: readonly ClusterMember[];
  readonly #streams: readonly KeepAliveStream[];
  readonly #history: RecordedHistory;
  readonly #random: SeededRandom;

  constructor(members: readonly ClusterMember[], history: RecordedHistory, random: SeededRandom) {
    this.#members = members;
    this.#streams = members.map(({ client }) => new KeepAliveStream(client));
    this.#history = history;
    this.#random = random;
  }

  async run(id: bigint): Promise<void> {
    const granting = this.#random.pick(this.#members);
    await this.#record(granting, { kind: 'grant', id, ttlMs }, async () => {
      await granting.lease.leaseGrant({ ID: id, TTLMs: BigInt(ttlMs) });
      return true;
    });
    const renewers = this.#members.map((_, at) => this.#renewUntilGone(at, id));
    const renewing = Promise.all(renewers.map(({ done }) => done));
    await Promise.race([Promise.all(renewers.map(({ begun }) => begun)), renewing]);
    const { min, max } = renewedForMs;
    await new Promise((resolve) => setTimeout(resolve, this.#random.integer(min, max)));
    const revoking = this.#random.pick(this.#members);
    await this.#record(revoking, { kind: 'revoke', id }, async () => {
      await revoking.lease.leaseRevoke({ ID: id });
      return true;
    });
    await renewing;
  }

  close(): void {
    for (const stream of this.#streams) stream.close();
  }

  /** `begun`: the first renewal was answered; `done`: one renewal reported that the lease is gone. */
  #renewUntilGone(at: number, id: bigint): { begun: Promise<unknown>; done: Promise<void> } {
    const [member, stream] = [this.#members[at] as ClusterMember, this.#streams[at] as KeepAliveStream];
    const renew = (): Promise<boolean> =>
      this.#record(member, { kind: 'renew', id }, async () => (await stream.renew(id)).TTL > 0n);
    const begun = renew();
    const renewOn = async (): Promise<void> => {
      for (let alive = await begun; alive;) alive = await renew();
    };
    return { begun, done: renewOn() };
  }

  /** Throws when there is no answer: no server fails permanently here. */
  async #record(member: ClusterMember, input: LeaseInput, call: () => Promise<boolean>): Promise<boolean> {
    const { outcome, ...times } = await timed(async () => ({ alive: await call() }));
    this.#history.leases.push({ client: 0, server: member.name, input, outcome, ...times });
    if (outcome.kind !== 'known') throw new Error(`${member.name} did not answer: ${input.kind} of ${input.id}`);
    return outcome.output.alive;
  }
}
