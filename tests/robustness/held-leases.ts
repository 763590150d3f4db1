import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { putMany } from './put-many.ts';
import type { TestedServer } from './tested-server.ts';

export interface HeldLeasesOptions {
  readonly count: number;
  readonly ttlMs: number;
  /** The number of keep-alive streams for the leases. */
  readonly streams: number;
}

const prefix = 'held/';
const prefixEnd = 'held0';
const grantsAtOnce = 50;
/** etcd's clients renew at a third of the TTL; this client leaves room for its own delays. */
const renewalsPerTtl = 4;
/** If two rounds of renewals are further apart than this share of a TTL, the client itself was delayed. */
const maxGapShare = 0.8;

/** Leases with a key each, renewed all the time; records which of them the server expired. */
export class HeldLeases {
  readonly ids: readonly bigint[];
  /** Leases whose renewal was answered with a TTL of 0. */
  readonly refused = new Set<bigint>();
  readonly #server: TestedServer;
  readonly #ttlMs: number;
  readonly #streams: readonly KeepAliveStream[];
  #granted = 0;
  #timer: NodeJS.Timeout | undefined;
  #renewedAtMs = performance.now();
  #longestGapMs = 0;
  #abandoned = false;
  #answers = 0;

  constructor(server: TestedServer, options: HeldLeasesOptions) {
    this.#server = server;
    this.#ttlMs = options.ttlMs;
    this.ids = Array.from({ length: options.count }, (_, at) => BigInt(10_000 + at));
    this.#streams = Array.from({ length: options.streams }, () => new KeepAliveStream(server.client));
  }

  /** Resolves when all leases hold their keys and are being renewed. */
  async take(): Promise<void> {
    const { ids } = this;
    for (const stream of this.#streams) void this.#readAnswers(stream);
    this.#renewAll();
    this.#timer = setInterval(() => this.#renewAll(), this.#ttlMs / renewalsPerTtl);
    for (let at = 0; at < ids.length; at += grantsAtOnce) {
      const some = ids.slice(at, at + grantsAtOnce);
      await Promise.all(some.map((ID) => this.#server.lease.leaseGrant({ ID, TTLMs: BigInt(this.#ttlMs) })));
      this.#granted += some.length;
    }
    await putMany(this.#server.client, ids.length, (at) => ({ key: keyOf(ids[at]!), value: '', lease: ids[at]! }));
  }

  /** The longest time between two rounds of renewals until now, or until the leases were abandoned. */
  get longestGapMs(): number {
    return Math.max(this.#longestGapMs, this.#abandoned ? 0 : performance.now() - this.#renewedAtMs);
  }

  /** Whether this process failed to renew in time: then a lost lease proves nothing about the server. */
  get wasHeldUp(): boolean {
    return this.longestGapMs >= this.#ttlMs * maxGapShare;
  }

  get answers(): number {
    return this.#answers;
  }

  /** The number of remaining keys. */
  async keyCount(): Promise<number> {
    const range = { key: Buffer.from(prefix), rangeEnd: Buffer.from(prefixEnd), countOnly: true };
    return Number((await this.#server.kv.range(range, { deadlineMs: 60_000 })).count);
  }

  /** Stops all renewals. */
  abandon(): void {
    clearInterval(this.#timer);
    this.#longestGapMs = this.longestGapMs;
    this.#abandoned = true;
  }

  close(): void {
    this.abandon();
    for (const stream of this.#streams) stream.close();
  }

  #renewAll(): void {
    const nowMs = performance.now();
    this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#renewedAtMs);
    this.#renewedAtMs = nowMs;
    const granted = this.ids.slice(0, this.#granted);
    granted.forEach((id, at) => this.#streams[at % this.#streams.length]?.send(id));
  }

  async #readAnswers(stream: KeepAliveStream): Promise<void> {
    for (;;) {
      const answer = await stream.next().catch(() => undefined);
      if (answer === undefined) return;
      this.#answers += 1;
      if (answer.TTLMs === 0n) this.refused.add(answer.ID);
    }
  }
}

function keyOf(id: bigint): string {
  return `${prefix}${id}`;
}
