import { setTimeout as delay } from 'node:timers/promises';
import { etcdserverpb } from '@tenure/protocol';
import { encodeLeaseGrantRequest, encodePutRequest, frameHeadroomBytes } from '@tenure/codec';
import { runFrameLoad } from '../../benchmarks/src/wire/frame-load.ts';
import { framed } from '../../conformance/client/http2-call.ts';
import { WatchStream } from '../../conformance/client/watch-stream.ts';
import { putMany } from './put-many.ts';
import type { MeasuredDelay, RenewalDelay } from './renewal-delay.ts';
import type { TestedServer } from './tested-server.ts';

/** Less than the server counts for any version of a key. */
const leastVersionBytes = 100;

/**
 * Bulk work in rounds. Each round is prepared, and then measured by how long it delays the renewals of other clients.
 */
export class LargeWork {
  readonly #server: TestedServer;
  readonly #delay: RenewalDelay;
  #nextLease = 1_000_000n;

  constructor(server: TestedServer, renewalDelay: RenewalDelay) {
    this.#server = server;
    this.#delay = renewalDelay;
  }

  /** One lease with `keys` keys is revoked while `watchers` clients watch all of them. */
  async revokeLease(keys: number, watchers: number): Promise<MeasuredDelay> {
    const { client, lease } = this.#server;
    const ID = (this.#nextLease += 1n);
    await lease.leaseGrant({ ID, TTL: 600n });
    await putMany(client, keys, (at) => ({ key: `large/${at}`, value: 'x'.repeat(16), lease: ID }));
    const streams = Array.from({ length: watchers }, () => new WatchStream(client));
    const range = { key: Buffer.from('large/'), rangeEnd: Buffer.from('large0') };
    const watches = await Promise.all(streams.map((stream) => stream.create(range)));
    const measured = await this.#delay.during(async () => {
      await lease.leaseRevoke({ ID });
      await Promise.all(streams.map((stream, at) => stream.events(watches[at]!.watchId, keys)));
    });
    for (const stream of streams) stream.close();
    return measured;
  }

  /** So many leases, each with a key, expire in the same second. */
  async expireLeases(count: number, ttlMs: number): Promise<MeasuredDelay> {
    const { client } = this.#server;
    const first = this.#nextLease + 1n;
    this.#nextLease += BigInt(count);
    await this.#load('/etcdserverpb.Lease/LeaseGrant', count, (index) => grantOf(first + BigInt(index), ttlMs));
    await putMany(client, count, (at) => ({ key: `expiring/${at}`, value: '', lease: first + BigInt(at) }));
    return this.#delay.during(async () => {
      await this.#server.settled('tenure_keys', 0, 3 * ttlMs);
    });
  }

  async deleteRange(keys: number): Promise<MeasuredDelay> {
    const { client, kv } = this.#server;
    await putMany(client, keys, (at) => ({ key: `many/${at}`, value: 'x'.repeat(16), lease: 0n }));
    return this.#delay.during(() => kv.deleteRange({ key: Buffer.from('many/'), rangeEnd: Buffer.from('many0') }));
  }

  /** Compacts everything behind so many puts of a few keys, and waits until its memory is freed. */
  async compact(revisions: number, keys: number): Promise<MeasuredDelay> {
    const { kv } = this.#server;
    await this.#load('/etcdserverpb.KV/Put', revisions, (index) => putOf(`compacted/${index % keys}`));
    const { header } = await kv.range({ key: Buffer.from('compacted/0') });
    const leftBytes = (await this.#server.metric('tenure_state_bytes')) - (revisions - keys) * leastVersionBytes;
    return this.#delay.during(async () => {
      await kv.compact({ revision: header?.revision ?? 0n });
      await this.#server.settled('tenure_state_bytes', leftBytes, 30_000);
    });
  }

  /** A client takes a snapshot of so many keys while the server writes one itself. */
  async takeSnapshots(keys: number): Promise<MeasuredDelay> {
    const { client } = this.#server;
    await putMany(client, keys, (at) => ({ key: `kept/${at}`, value: 'x'.repeat(64), lease: 0n }));
    await delay(1_000);
    return this.#delay.during(() => {
      return client.serverStream(etcdserverpb.Maintenance.method.snapshot, {}, { deadlineMs: 60_000 });
    });
  }

  #load(path: string, requests: number, requestOf: (index: number) => Buffer): Promise<unknown> {
    return runFrameLoad({
      address: this.#server.address,
      path,
      requests,
      connections: 4,
      streamsPerConnection: 100,
      framedRequest: (index) => framed(requestOf(index)),
    });
  }
}

function putOf(key: string): Buffer {
  const put = { key, value: 'x'.repeat(32), lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
  return encodePutRequest(put).subarray(frameHeadroomBytes);
}

function grantOf(id: bigint, ttlMs: number): Buffer {
  return encodeLeaseGrantRequest({ id, ttlSeconds: 0, ttlMs, label: '' }).subarray(frameHeadroomBytes);
}
