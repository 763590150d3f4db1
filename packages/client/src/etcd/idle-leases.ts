import type { Clock, Timer } from '../time/clock.ts';
import type { LeaseClient } from './client/lease-client.ts';

/** Over all TTLs together; further leases are revoked. */
const idleLeasesMax = 64;
/** An idle lease is not renewed, and revoked after this time, so that none stays in the server. */
const idleMs = 10_000;

interface IdleLease {
  readonly lease: bigint;
  readonly ttlMs: number;
  readonly timer: Timer;
}

/**
 * Leases without an attached key, for the next entries with the same TTL. A grant and a revocation each go through the
 * server's log and to its disk, as the entry itself does, but a renewal does not. So repeated acquisitions take half
 * the time.
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

  /** Removes and returns a lease. It may have expired: renew it before its use. */
  take(ttlMs: number): bigint | undefined {
    // The most recently used one is the least likely to have expired.
    const at = this.#idle.findLastIndex((idle) => idle.ttlMs === ttlMs);
    if (at === -1) return undefined;
    const [taken] = this.#idle.splice(at, 1);
    taken?.timer.cancel();
    return taken?.lease;
  }

  /** Only for a lease that certainly has no attached key, and will get none from a request in flight. */
  keep(lease: bigint, ttlMs: number): void {
    if (this.#isClosed) return;
    if (this.#idle.length >= idleLeasesMax) return this.revoke(lease);
    const timer = this.#clock.setTimer(Math.min(idleMs, ttlMs / 2), () => this.#end(lease));
    this.#idle.push({ lease, ttlMs, timer });
  }

  /** Not awaited: if it fails, the lease expires with its TTL. */
  revoke(lease: bigint): void {
    if (!this.#isClosed) this.#client.revoke(lease).catch(() => undefined);
  }

  /** Revokes the idle leases if the client stays open long enough. Otherwise they expire by their TTL. */
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
