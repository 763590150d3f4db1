import type { Clock, Timer } from '../time/clock.ts';
import type { LeaseClient } from './client/lease-client.ts';

/** Of all times to live together; what comes on top is revoked. */
const idleLeasesMax = 64;
/** Not renewed meanwhile, and revoked then, so that nothing is left behind in the server. */
const idleMs = 10_000;

interface IdleLease {
  readonly lease: bigint;
  readonly ttlMs: number;
  readonly timer: Timer;
}

/**
 * Leases that no key hangs on any more, for the next entries with the same time to live. A grant and a revocation each
 * go through the server's log and to its disk, as the entry itself does, and a renewal does not: so whoever acquires
 * again and again, or tries to, is done in half the time.
 */
export class IdleLeases {
  readonly #client: LeaseClient;
  readonly #clock: Clock;
  #idle: IdleLease[] = [];
  #isClosed = false;

  constructor(client: LeaseClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** A lease that nobody else gets. It may have ended meanwhile: renew it before its use. */
  take(ttlMs: number): bigint | undefined {
    // The one that was used last has the best chance to live.
    const at = this.#idle.findLastIndex((idle) => idle.ttlMs === ttlMs);
    if (at === -1) return undefined;
    const [taken] = this.#idle.splice(at, 1);
    taken?.timer.cancel();
    return taken?.lease;
  }

  /** Only for one of which it is known that no key hangs on it, nor will by a request that is still under way. */
  keep(lease: bigint, ttlMs: number): void {
    if (this.#isClosed) return;
    if (this.#idle.length >= idleLeasesMax) return this.revoke(lease);
    const timer = this.#clock.setTimer(Math.min(idleMs, ttlMs / 2), () => this.#end(lease));
    this.#idle.push({ lease, ttlMs, timer });
  }

  /** Nobody waits for it: if it fails, the lease ends with its TTL. */
  revoke(lease: bigint): void {
    if (!this.#isClosed) this.#client.revoke(lease).catch(() => undefined);
  }

  /** What is idle ends soon, if the client stays open for so long, and by its TTL otherwise. */
  close(): void {
    for (const { lease, timer } of this.#idle.splice(0)) {
      timer.cancel();
      this.revoke(lease);
    }
    this.#isClosed = true;
  }

  #end(lease: bigint): void {
    this.#idle = this.#idle.filter((idle) => idle.lease !== lease);
    this.revoke(lease);
  }
}
