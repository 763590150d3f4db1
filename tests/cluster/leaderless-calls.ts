import { etcdserverpb } from '@tenure/protocol';
import { expect } from 'vitest';
import type { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { refusalOf, type CallStatus } from '../../conformance/client/refusal.ts';
import { serviceCalls } from '../../conformance/client/service-calls.ts';
import { WatchStream } from '../../conformance/client/watch-stream.ts';
import { eventually } from './cluster.ts';

const requiring = { metadata: { hasleader: 'true' } };
const key = Buffer.from('leaderless');
const noLeader = { code: 14, details: 'etcdserver: no leader' };
/** Longer than a server waits by itself. */
const patient = { deadlineMs: 30_000 };

/**
 * The errors of a server whose leader is lost, by etcd's rules: the same for etcd and for Tenure. Streams are opened
 * while there is a leader, and checked when it is gone.
 */
export class LeaderlessCalls {
  readonly #client: GrpcClient;
  readonly leaseId: bigint;
  readonly #watches: readonly [requiring: WatchStream, plain: WatchStream];
  readonly #renewals: readonly [requiring: KeepAliveStream, waiting: KeepAliveStream, idle: KeepAliveStream];
  readonly #over = new Set<unknown>();

  private constructor(client: GrpcClient, leaseId: bigint) {
    this.#client = client;
    this.leaseId = leaseId;
    this.#watches = [new WatchStream(client, requiring), new WatchStream(client)];
    this.#renewals = [new KeepAliveStream(client, requiring), new KeepAliveStream(client), new KeepAliveStream(client)];
    for (const each of [...this.#watches, ...this.#renewals]) void each.ended.then(() => this.#over.add(each));
  }

  /** Opens the streams, with a lease under that id or, if that failed, under the next one. */
  static open(client: GrpcClient, firstLeaseId: bigint): Promise<LeaderlessCalls> {
    let leaseId = firstLeaseId;
    return eventually('the streams are open', async () => {
      const calls = new LeaderlessCalls(client, leaseId);
      leaseId += 100n;
      try {
        await calls.#open();
        return calls;
      } catch (error) {
        calls.close();
        throw error;
      }
    });
  }

  async #open(): Promise<void> {
    const { kv, lease } = this.#calls();
    await kv.put({ key, value: Buffer.from('before') }, requiring);
    await lease.leaseGrant({ ID: this.leaseId, TTL: 600n });
    for (const watch of this.#watches) expect((await watch.create({ key })).created).toBe(true);
    for (const renewals of this.#renewals) expect((await renewals.renew(this.leaseId)).TTL).toBe(600n);
  }

  /**
   * To be called when the leader is gone. Returns the errors of a linearizable read and a write that waited for as long
   * as the server allows.
   */
  async check(): Promise<readonly [read: CallStatus, write: CallStatus]> {
    const { kv } = this.#calls();
    const [requiringWatch, plainWatch] = this.#watches;
    const [requiringRenewals, waiting, idle] = this.#renewals;
    await eventually('calls that require a leader are refused', async () => {
      const status = await refusalOf(kv.range({ key, serializable: true }, requiring)).catch(() => undefined);
      return status?.details === noLeader.details ? true : undefined;
    });
    waiting.send(this.leaseId);
    const unanswered = [
      refusalOf(kv.range({ key }, patient)),
      refusalOf(kv.put({ key, value: Buffer.from('unanswered') }, patient)),
    ] as const;
    expect(await refusalOf(kv.put({ key, value: Buffer.from('x') }, requiring))).toEqual(noLeader);
    expect(await new WatchStream(this.#client, requiring).ended).toEqual(noLeader);
    expect(await new KeepAliveStream(this.#client, requiring).ended).toEqual(noLeader);

    expect(await requiringWatch.ended).toEqual(noLeader);
    expect(await requiringRenewals.ended).toEqual(noLeader);
    // Calls that need the leader fail in the end with the reason.
    expect(await waiting.ended).toEqual(noLeader);
    const statuses = await Promise.all(unanswered);
    // Calls that need no leader are still answered.
    expect(this.#over.has(plainWatch)).toBe(false);
    expect(this.#over.has(idle)).toBe(false);
    const { kvs } = await kv.range({ key, serializable: true });
    expect(Buffer.from(kvs[0]?.value ?? []).toString()).toBe('before');
    return statuses;
  }

  close(): void {
    for (const stream of [...this.#watches, ...this.#renewals]) stream.close();
  }

  #calls() {
    return {
      kv: serviceCalls(this.#client, etcdserverpb.KV),
      lease: serviceCalls(this.#client, etcdserverpb.Lease),
    };
  }
}
