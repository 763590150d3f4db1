import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { putMany } from './put-many.ts';
import type { TestedServer } from './tested-server.ts';

export interface HeldLeasesOptions {
  readonly count: number;
  readonly ttlMs: number;
  /** The leases are spread over so many keep-alive streams. */
  readonly streams: number;
}

const prefix = 'held/';
const prefixEnd = 'held0';
const grantsAtOnce = 50;
/** etcd's clients renew at a third of the TTL; this one leaves room for being held up itself. */
const renewalsPerTtl = 4;

/** Leases with a key each, renewed all the time; remembers which of them the server has let go. */
export class HeldLeases {
  readonly ids: readonly bigint[];
  /** Leases whose renewal was answered with a TTL of 0. */
  readonly refused = new Set<bigint>();
  readonly #server: TestedServer;
  readonly #streams: readonly KeepAliveStream[];
  #granted = 0;
  #timer: NodeJS.Timeout | undefined;
  #renewedAtMs = Number.NaN;
  #longestGapMs = 0;
  #answers = 0;

  private constructor(server: TestedServer, options: HeldLeasesOptions) {
    this.#server = server;
    this.ids = Array.from({ length: options.count }, (_, at) => BigInt(10_000 + at));
    this.#streams = Array.from({ length: options.streams }, () => new KeepAliveStream(server.client));
  }

  /** Resolves when all leases hold their keys and are being renewed. */
  static async take(server: TestedServer, options: HeldLeasesOptions): Promise<HeldLeases> {
    const held = new HeldLeases(server, options);
    for (const stream of held.#streams) void held.#readAnswers(stream);
    held.#timer = setInterval(() => held.#renewAll(), options.ttlMs / renewalsPerTtl);
    for (let at = 0; at < held.ids.length; at += grantsAtOnce) {
      const some = held.ids.slice(at, at + grantsAtOnce);
      await Promise.all(some.map((ID) => server.lease.leaseGrant({ ID, TTLMs: BigInt(options.ttlMs) })));
      held.#granted += some.length;
    }
    const { ids } = held;
    await putMany(server.client, ids.length, (at) => ({ key: keyOf(ids[at]!), value: '', lease: ids[at]! }));
    return held;
  }

  /** The longest time between two rounds of renewals: if it is near the TTL, this process was held up itself. */
  get longestGapMs(): number {
    return this.#longestGapMs;
  }

  get answers(): number {
    return this.#answers;
  }

  /** How many keys are left. */
  async keyCount(): Promise<number> {
    const range = { key: Buffer.from(prefix), rangeEnd: Buffer.from(prefixEnd), countOnly: true };
    return Number((await this.#server.kv.range(range)).count);
  }

  /** Renews nothing any more. */
  abandon(): void {
    clearInterval(this.#timer);
  }

  close(): void {
    this.abandon();
    for (const stream of this.#streams) stream.close();
  }

  #renewAll(): void {
    const nowMs = performance.now();
    if (!Number.isNaN(this.#renewedAtMs)) this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#renewedAtMs);
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
