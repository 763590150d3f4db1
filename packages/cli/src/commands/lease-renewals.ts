import type { MessageShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import type { EtcdClient } from 'tenure/etcd';

type Reply = MessageShape<typeof etcdserverpb.LeaseKeepAliveResponseSchema>;

export interface Renewal {
  readonly reply: Reply;
  /** 0 or less: the lease is gone. */
  readonly ttlMs: number;
}

/**
 * Renews one lease on one stream, a third of its TTL after each answer, so that two renewals may fail before the lease
 * expires.
 */
export class LeaseRenewals {
  readonly #client: EtcdClient;
  readonly #id: bigint;

  constructor(client: EtcdClient, id: bigint) {
    this.#client = client;
    this.#id = id;
  }

  /** With `once` it ends after one answer, otherwise when the caller stops reading. Throws when the stream breaks. */
  async *run(once: boolean): AsyncGenerator<Renewal> {
    const stream = await this.#client.stream(etcdserverpb.Lease.method.leaseKeepAlive);
    let timer: NodeJS.Timeout | undefined;
    try {
      stream.send({ ID: this.#id });
      for await (const reply of stream.messages) {
        const ttlMs = reply.TTLMs === 0n ? Number(reply.TTL) * 1000 : Number(reply.TTLMs);
        if (!once && ttlMs > 0) timer = setTimeout(() => stream.send({ ID: this.#id }), ttlMs / 3);
        yield { reply, ttlMs };
        if (once) return;
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
