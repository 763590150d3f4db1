import { etcdserverpb } from '@tenure/protocol';
import type { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { serviceCalls } from '../../conformance/client/service-calls.ts';

/** Allowance in this test for the clocks of two processes and the messages between them. */
const slackMs = 400;
/** What a crash may add: a heartbeat that was not yet in the log. */
const heartbeatMs = 200;

/** A lease with one key, of a client that renews it whenever it can. */
export class KeptLease {
  readonly id: bigint;
  readonly ttlMs: number;
  readonly key: string;
  /** When the last acknowledged renewal was sent, and when it was answered. */
  #sentMs = 0;
  #answeredMs = 0;
  #stopped = false;

  constructor(id: bigint, ttlMs: number) {
    this.id = id;
    this.ttlMs = ttlMs;
    this.key = `leased/${id}`;
  }

  async grant(client: GrpcClient): Promise<void> {
    this.#sentMs = performance.now();
    await serviceCalls(client, etcdserverpb.Lease).leaseGrant({ ID: this.id, TTLMs: BigInt(this.ttlMs) });
    this.#answeredMs = performance.now();
    await serviceCalls(client, etcdserverpb.KV).put({ key: Buffer.from(this.key), lease: this.id });
  }

  /** Renews every third of the TTL until the server is gone or `stop` is called. Rejects when the lease was lost. */
  async keep(client: GrpcClient): Promise<void> {
    this.#stopped = false;
    const stream = client.bidi(etcdserverpb.Lease.method.leaseKeepAlive);
    try {
      while (!this.#stopped) {
        const sentMs = performance.now();
        stream.send({ ID: this.id });
        const reply = await stream.messages.take('a renewal', () => true).catch(() => undefined);
        if (reply === undefined) return;
        if (reply.TTL === 0n) throw new Error(`lease ${this.id} was lost ${sentMs - this.#sentMs} ms after a renewal`);
        this.#sentMs = sentMs;
        this.#answeredMs = performance.now();
        await Promise.race([new Promise((resolve) => setTimeout(resolve, this.ttlMs / 3)), stream.ended]);
      }
    } finally {
      stream.cancel();
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  /**
   * After a crash: checks that the lease exists, with its key and the expected remaining TTL. `downMs` is the time
   * without a leader.
   */
  async check(client: GrpcClient): Promise<void> {
    const { TTLMs, keys } = await serviceCalls(client, etcdserverpb.Lease).leaseTimeToLive({ ID: this.id, keys: true });
    const nowMs = performance.now();
    const leftMs = Number(TTLMs);
    if (leftMs <= 0) throw new Error(`lease ${this.id} is gone ${nowMs - this.#answeredMs} ms after a renewal`);
    if (keys.length !== 1) throw new Error(`lease ${this.id} holds ${keys.length} keys instead of one`);
    // Time without a leader does not count, so the rest may be longer than a client expects, but never shorter.
    const leastMs = this.ttlMs - (nowMs - this.#sentMs) - slackMs;
    const mostMs = this.ttlMs + heartbeatMs;
    if (leftMs < leastMs || leftMs > mostMs) {
      throw new Error(`lease ${this.id} has ${leftMs} ms left; it should be from ${leastMs} to ${mostMs}`);
    }
  }
}
