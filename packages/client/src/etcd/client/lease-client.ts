import { etcdserverpb } from '@tenure/protocol';
import type { EtcdConnection } from '../connection/etcd-connection.ts';
import { EtcdError } from '../connection/etcd-error.ts';
import { KeepAliveStream, ttlMsOf } from './keep-alive-stream.ts';
import type { Signal } from '../../time/signal.ts';

export interface GrantOptions {
  /** etcd counts whole seconds, so it is rounded up there; a Tenure server counts milliseconds. */
  readonly ttlMs: number;
  /** Chosen by the server by default. An id in use is refused. */
  readonly id?: bigint;
  readonly signal?: Signal;
}

export interface GrantedLease {
  readonly id: bigint;
  /** The granted TTL, never less than the requested one. */
  readonly ttlMs: number;
}

export interface LeaseLife {
  readonly id: bigint;
  /** etcd rounds down to whole seconds: there it is 0 in the last second of a live lease. */
  readonly remainingMs: number;
  readonly grantedMs: number;
  readonly keys: readonly Uint8Array[];
}

const methods = etcdserverpb.Lease.method;

/** Leases, as etcd has them. All reject with EtcdError. */
export class LeaseClient {
  readonly #connection: EtcdConnection;
  readonly #renewals: KeepAliveStream;

  constructor(connection: EtcdConnection) {
    this.#connection = connection;
    this.#renewals = new KeepAliveStream(connection);
  }

  /**
   * Sent once. With the code `ambiguous` it may have been granted; a lease with an id chosen by the caller can then be
   * revoked.
   */
  async grant({ ttlMs, id = 0n, signal }: GrantOptions): Promise<GrantedLease> {
    const request = { TTL: BigInt(Math.ceil(ttlMs / 1000)), TTLMs: BigInt(Math.ceil(ttlMs)), ID: id };
    const answer = await this.#connection.write(methods.leaseGrant, request, signal);
    if (answer.error !== '') throw new EtcdError('invalid', 'etcd', answer.error);
    return { id: answer.ID, ttlMs: ttlMsOf(answer) };
  }

  /**
   * Renews once, on the one stream that all leases of this client share. Resolves with the remaining time in
   * milliseconds; 0 when the lease is gone.
   */
  keepAlive(id: bigint, signal?: Signal): Promise<number> {
    return this.#renewals.renew(id, signal);
  }

  /** Ends the lease and deletes its keys. Resolves with whether it existed. It is idempotent, so it is retried. */
  async revoke(id: bigint, signal?: Signal): Promise<boolean> {
    try {
      await this.#connection.read(methods.leaseRevoke, { ID: id }, { signal });
      return true;
    } catch (error) {
      if (error instanceof EtcdError && error.etcdCode === 'not-found') return false;
      throw error;
    }
  }

  /** Undefined if there is no such lease. */
  async timeToLive(id: bigint, options: { readonly keys?: boolean } = {}): Promise<LeaseLife | undefined> {
    const request = { ID: id, keys: options.keys === true };
    const answer = await this.#connection.read(methods.leaseTimeToLive, request);
    if (answer.TTL < 0n) return undefined;
    const grantedMs = answer.grantedTTLMs === 0n ? Number(answer.grantedTTL) * 1000 : Number(answer.grantedTTLMs);
    return { id, remainingMs: ttlMsOf(answer), grantedMs, keys: answer.keys };
  }

  /** The ids of all leases. */
  async list(): Promise<readonly bigint[]> {
    return (await this.#connection.read(methods.leaseLeases, {})).leases.map(({ ID }) => ID);
  }

  close(): void {
    this.#renewals.close();
  }
}
