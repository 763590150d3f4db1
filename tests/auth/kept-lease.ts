import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import type { AnonymousAccess } from './anonymous-access.ts';
import { type AccessClient, metadataOf, pause } from './access-client.ts';
import type { RootAccess } from './root-access.ts';

const renewMs = 500;
let nextId = 1_000n;

/** A lease with a key of the user, which it renews through one server on a stream that stays open. */
export class KeptLease {
  readonly #id: bigint;
  readonly #client: AccessClient;
  readonly #server: () => AnonymousAccess | undefined;
  #renewals = 0;
  #hasEnded = false;
  #stopped = false;

  private constructor(id: bigint, client: AccessClient, server: () => AnonymousAccess | undefined) {
    this.#id = id;
    this.#client = client;
    this.#server = server;
    void this.#run();
  }

  /** `server`: undefined while it does not run. */
  static async grant(
    ttlSeconds: bigint,
    client: AccessClient,
    server: () => AnonymousAccess | undefined,
    root: RootAccess,
  ): Promise<KeptLease> {
    const ID = (nextId += 1n);
    await root.persist(({ lease }) => lease.leaseGrant({ ID, TTL: ttlSeconds }), 'etcdserver: lease already exists');
    await root.persist(({ kv }) => kv.put({ key: Buffer.from(`keep/lease/${ID}`), lease: ID }));
    return new KeptLease(ID, client, server);
  }

  /** Throws unless the lease and its key exist, and it was renewed. */
  async check(server: Pick<AnonymousAccess, 'lease'>): Promise<void> {
    const { TTL, keys } = await server.lease.leaseTimeToLive({ ID: this.#id, keys: true });
    if (this.#hasEnded || TTL < 0n || keys.length !== 1 || this.#renewals === 0) {
      throw new Error(`the lease ${this.#id} was lost: ${TTL}, ${keys.length} keys, ${this.#renewals} renewals`);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const server = this.#server();
      if (server !== undefined) await this.#renew(server);
      await pause(renewMs);
    }
  }

  /** Until the stream ends: with the server, or with the token. */
  async #renew(server: AnonymousAccess): Promise<void> {
    const stream = new KeepAliveStream(server.client, { metadata: metadataOf(this.#client.token) });
    try {
      while (!this.#stopped) {
        const { TTL } = await stream.renew(this.#id);
        if (TTL === 0n) this.#hasEnded = true;
        else this.#renewals += 1;
        await pause(renewMs);
      }
    } catch {
      // The requests of its client find out whether the refusal was right, and log in again.
    } finally {
      stream.close();
    }
  }
}
