import { expect } from 'vitest';
import { Code } from '../client/refusal.ts';
import type { CaseGroup } from './case.ts';

export const leaseKeepAlive: CaseGroup = {
  name: 'Lease.LeaseKeepAlive',
  cases: [
    {
      name: 'returns the granted TTL, and creates no revision',
      run: async (t) => {
        const id = await t.grant(77n);
        const revision = await t.revision();
        const reply = await t.keepAliveStream().renew(id);
        expect(reply).toMatchObject({ ID: id, TTL: 77n });
        expect(reply.header?.revision).toBe(revision);
        expect(reply.header?.clusterId).not.toBe(0n);
        expect(await t.revision()).toBe(revision);
      },
    },
    {
      name: 'renews many leases on one stream, answered in the order of the requests',
      run: async (t) => {
        const ids: bigint[] = [];
        for (let index = 0; index < 50; index += 1) ids.push(await t.grant());
        const requests = [...ids, ...ids.toReversed()];
        const stream = t.keepAliveStream();
        for (const id of requests) stream.send(id);
        const answered: bigint[] = [];
        for (const _ of requests) answered.push((await stream.next()).ID);
        expect(answered).toEqual(requests);
      },
    },
    {
      name: 'answers TTL 0 for a lease that does not exist, and the stream lives on',
      run: async (t) => {
        const id = await t.grant(60n);
        const stream = t.keepAliveStream();
        for (const unknown of [0x7fffffffn, -9n, 0n]) {
          expect(await stream.renew(unknown)).toMatchObject({ ID: unknown, TTL: 0n });
        }
        expect(await stream.renew(id)).toMatchObject({ ID: id, TTL: 60n });
      },
    },
    {
      name: 'answers TTL 0 after the revocation, with a revision that is not older',
      run: async (t) => {
        const id = await t.grant(60n);
        await t.put('a', '1', id);
        const stream = t.keepAliveStream();
        expect(await stream.renew(id)).toMatchObject({ TTL: 60n });
        const revoked = await t.lease.leaseRevoke({ ID: id });
        const reply = await stream.renew(id);
        expect(reply.TTL).toBe(0n);
        expect(reply.header?.revision).toBe(revoked.header?.revision);
      },
    },
    {
      name: 'renews a lease that was granted again under a revoked id',
      run: async (t) => {
        const id = await t.grant(60n);
        const stream = t.keepAliveStream();
        await t.lease.leaseRevoke({ ID: id });
        expect(await stream.renew(id)).toMatchObject({ TTL: 0n });
        await t.grant(50n, id);
        expect(await stream.renew(id)).toMatchObject({ TTL: 50n });
      },
    },
    {
      name: 'sets the time to live back to the whole TTL',
      run: async (t) => {
        const ttlSeconds = 60n;
        const id = await t.grant(ttlSeconds);
        const stream = t.keepAliveStream();
        await t.until('a second of the lease has passed', async () => (await t.ttlOf(id)) <= ttlSeconds - 2n);
        const before = await t.ttlOf(id);
        const sentAt = performance.now();
        await stream.renew(id);
        const ttl = await t.ttlOf(id);
        const passedSeconds = BigInt(Math.ceil((performance.now() - sentAt) / 1000));
        expect(ttl).toBeGreaterThanOrEqual(ttlSeconds - passedSeconds);
        expect(ttl).toBeGreaterThan(before - passedSeconds);
      },
    },
    {
      name: 'ends with OK when the client has no more to send, after it has answered everything',
      run: async (t) => {
        const id = await t.grant(60n);
        const stream = t.keepAliveStream();
        for (let index = 0; index < 10; index += 1) stream.send(id);
        stream.halfClose();
        for (let index = 0; index < 10; index += 1) expect(await stream.next()).toMatchObject({ ID: id, TTL: 60n });
        expect(await stream.ended).toEqual({ code: Code.ok, details: '' });
      },
    },
    {
      name: 'keeps streams apart: the end of one renews nothing and ends no other',
      run: async (t) => {
        const id = await t.grant(60n);
        const [first, second] = [t.keepAliveStream(), t.keepAliveStream()];
        expect(await first.renew(id)).toMatchObject({ TTL: 60n });
        expect(await second.renew(id)).toMatchObject({ TTL: 60n });
        first.close();
        expect((await first.ended).code).toBe(Code.cancelled);
        expect(await second.renew(id)).toMatchObject({ TTL: 60n });
      },
    },
    {
      name: 'answers milliseconds',
      tenureOnly: 'TTL_ms is an extension field',
      run: async (t) => {
        const { ID } = await t.lease.leaseGrant({ TTLMs: 1_234_567n });
        t.cleanUp(() => t.lease.leaseRevoke({ ID }));
        const stream = t.keepAliveStream();
        expect(await stream.renew(ID)).toMatchObject({ TTL: 1235n, TTLMs: 1_234_567n });
        expect(await stream.renew(0x7fffffffn)).toMatchObject({ TTL: 0n, TTLMs: 0n });
      },
    },
  ],
};
