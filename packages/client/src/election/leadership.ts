import type { EntryKey } from '../backend/lease-backend.ts';
import type { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { Hold, ReleaseOptions } from '../leases/hold.ts';
import type { LeaseHold } from '../leases/lease-hold.ts';
import type { LeaseRegistry } from '../leases/lease-registry.ts';
import type { Signal } from '../time/signal.ts';

/** The hold of an elected leader. */
export interface Leadership extends Hold {
  /** The value proclaimed last. */
  readonly value: string;
  /**
   * Replaces the value that all clients can read. Concurrent calls take effect one after the other. Rejects with a
   * LeaseLostError if this is no longer the leader, and with a BackendError if the outcome is unknown.
   */
  proclaim(value: string): Promise<void>;
  /** The same as `release`. The next candidate is elected at once. */
  resign(): Promise<boolean>;
}

export class ElectedLeadership implements Leadership {
  readonly #registry: LeaseRegistry;
  readonly #hold: LeaseHold;
  #value: string;
  #proclaimed: Promise<unknown> = Promise.resolve();

  constructor(registry: LeaseRegistry, hold: LeaseHold, value: string) {
    this.#registry = registry;
    this.#hold = hold;
    this.#value = value;
  }

  get name(): string {
    return this.#hold.name;
  }

  get holder(): string {
    return this.#hold.holder;
  }

  get fencingToken(): bigint {
    return this.#hold.fencingToken;
  }

  get ttlMs(): number {
    return this.#hold.ttlMs;
  }

  get entry(): EntryKey {
    return this.#hold.entry;
  }

  get signal(): Signal {
    return this.#hold.signal;
  }

  get value(): string {
    return this.#value;
  }

  get lost(): Promise<LeaseLostError | undefined> {
    return this.#hold.lost;
  }

  isHeld(): boolean {
    return this.#hold.isHeld();
  }

  throwIfLost(): void {
    this.#hold.throwIfLost();
  }

  async renew(): Promise<void> {
    await this.#hold.renew();
  }

  async proclaim(value: string): Promise<void> {
    this.#registry.checkData(value);
    const before = this.#proclaimed;
    const proclaiming = before.then(() => this.#proclaim(value));
    this.#proclaimed = proclaiming.catch(() => {});
    await proclaiming;
  }

  release(options?: ReleaseOptions): Promise<boolean> {
    return this.#hold.release(options);
  }

  resign(): Promise<boolean> {
    return this.#hold.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#hold[Symbol.asyncDispose]();
  }

  async #proclaim(value: string): Promise<void> {
    this.#hold.throwIfLost();
    const { backend } = this.#registry;
    const isThere = await this.#registry.call((signal) => backend.update(this.entry, value, signal));
    // The entry is gone: a renewal determines the cause.
    if (!isThere) await this.#hold.renew();
    this.#hold.throwIfLost();
    this.#value = value;
  }
}
