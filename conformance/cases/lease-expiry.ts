import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

/** The client's clock and the server's may round differently. */
const clockSlackMs = 5;
const shortestSeconds = 1n;

const gone = (t: CaseContext, id: bigint) => async (): Promise<boolean> => (await t.ttlOf(id)) === -1n;

const endOfLease: Case[] = [
  {
    name: 'deletes the keys of an expired lease at one revision, in key order, and not early',
    run: async (t) => {
      const sentAt = performance.now();
      const lease = await t.grant(shortestSeconds);
      for (const name of ['b', 'c', 'a']) await t.put(name, '1', lease);
      const base = await t.put('other');
      const watch = t.watchStream();
      const { watchId } = await watch.create({ ...t.all(), prevKv: true });
      const replies = await watch.replies(watchId, 3);
      expect(performance.now() - sentAt).toBeGreaterThanOrEqual(1000 - clockSlackMs);
      expect(replies).toHaveLength(1);
      const events = replies[0]?.events ?? [];
      expect(t.events(events, base)).toEqual(['DELETE a +1', 'DELETE b +1', 'DELETE c +1']);
      expect(events.map(({ prevKv }) => prevKv?.lease)).toEqual([lease, lease, lease]);
      expect(await t.ttlOf(lease)).toBe(-1n);
      expect(await t.revision()).toBe(base + 1n);
    },
  },
  {
    name: 'takes no revision for an expired lease without keys',
    run: async (t) => {
      const lease = await t.grant(shortestSeconds);
      await t.put('moved', '1', lease);
      const revision = await t.put('moved', '2');
      await t.until('the lease is gone', gone(t, lease));
      expect(await t.revision()).toBe(revision);
      expect(await t.get('moved')).toMatchObject({ version: 2n });
    },
  },
  {
    name: 'knows an expired lease no more, and takes its id again',
    run: async (t) => {
      const lease = await t.grant(shortestSeconds);
      await t.until('the lease is gone', gone(t, lease));
      expect(await refusalOf(t.put('a', '1', lease))).toEqual(refused.leaseNotFound);
      expect(await refusalOf(t.lease.leaseRevoke({ ID: lease }))).toEqual(refused.leaseNotFound);
      expect(await t.keepAliveStream().renew(lease)).toMatchObject({ TTL: 0n });
      expect(await t.grant(60n, lease)).toBe(lease);
    },
  },
  {
    name: 'leaves a key that was moved to a longer lease',
    run: async (t) => {
      const [short, long] = [await t.grant(shortestSeconds), await t.grant()];
      await t.put('a', '1', short);
      await t.put('b', '1', short);
      await t.put('a', '2', long);
      await t.until('the short lease is gone', gone(t, short));
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['a=2']);
    },
  },
  {
    name: 'ends many leases that fall due together, each at a revision of its own',
    run: async (t) => {
      const leases = 100;
      const base = await t.revision();
      const watch = t.watchStream();
      const { watchId } = await watch.create({ ...t.all('key'), filters: [0] });
      for (let index = 0; index < leases; index += 1) {
        await t.put(`key${index}`, '1', await t.grant(shortestSeconds));
      }
      const events = await watch.events(watchId, leases);
      const revisions = new Set(events.map(({ kv }) => (kv?.modRevision ?? 0n) - base));
      expect(revisions.size).toBe(leases);
      expect(new Set(events.map(({ kv }) => t.nameOf(kv?.key ?? new Uint8Array()))).size).toBe(leases);
    },
  },
];

const renewal: Case[] = [
  {
    name: 'keeps a renewed lease far beyond its TTL, and ends it one TTL after the last renewal',
    run: async (t) => {
      const lease = await t.grant(shortestSeconds);
      await t.put('a', '1', lease);
      const stream = t.keepAliveStream();
      const start = performance.now();
      let renewedAt = start;
      await t.until('twice the TTL has passed', async () => {
        renewedAt = performance.now();
        expect(await stream.renew(lease)).toMatchObject({ TTL: shortestSeconds });
        return renewedAt - start > 2000;
      });
      expect(await t.get('a')).toMatchObject({ lease });
      await t.until('the lease is gone', gone(t, lease));
      expect(performance.now() - renewedAt).toBeGreaterThanOrEqual(1000 - clockSlackMs);
      expect(await t.get('a')).toBeUndefined();
    },
  },
  {
    name: 'is not renewed by a put, a look or a listing',
    run: async (t) => {
      const lease = await t.grant(shortestSeconds);
      let puts = 0;
      await t.until('the lease is gone, though it is used', async () => {
        await t.lease.leaseLeases({});
        if ((await t.ttlOf(lease)) === -1n) return true;
        await t.put('a', `${(puts += 1)}`, lease).catch(() => undefined);
        return false;
      });
      expect(puts).toBeGreaterThan(1);
    },
  },
];

const milliseconds: Case[] = [
  {
    name: 'ends a lease of 150 ms on time',
    tenureOnly: 'a TTL in milliseconds is an extension, and etcd looks for expired leases twice a second',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create(t.all());
      const sentAt = performance.now();
      const { ID } = await t.lease.leaseGrant({ TTLMs: 150n });
      await t.put('a', '1', ID);
      await watch.events(watchId, 2);
      const elapsedMs = performance.now() - sentAt;
      expect(elapsedMs).toBeGreaterThanOrEqual(150 - clockSlackMs);
      expect(elapsedMs).toBeLessThan(1500);
    },
  },
  {
    name: 'keeps a lease of half a second that is renewed every few milliseconds',
    tenureOnly: 'a TTL in milliseconds is an extension',
    run: async (t) => {
      const { ID } = await t.lease.leaseGrant({ TTLMs: 500n });
      const stream = t.keepAliveStream();
      const start = performance.now();
      await t.until('four times the TTL have passed', async () => {
        expect(await stream.renew(ID)).toMatchObject({ TTLMs: 500n });
        return performance.now() - start > 2000;
      });
      await t.until('the lease is gone', gone(t, ID));
    },
  },
  {
    name: 'shows no lease that is past its end: it is alive with time left, or gone',
    tenureOnly: 'etcd answers a TTL of 0 or less for a lease that it has yet to revoke',
    run: async (t) => {
      const { ID } = await t.lease.leaseGrant({ TTLMs: 200n });
      await t.until('the lease is gone', async () => {
        const { TTL, TTLMs } = await t.lease.leaseTimeToLive({ ID });
        if (TTL === -1n) return true;
        expect(TTL).toBe(1n);
        expect(TTLMs).toBeGreaterThan(0n);
        return false;
      });
    },
  },
];

export const leaseExpiry: CaseGroup = {
  name: 'the expiry of leases',
  cases: [...endOfLease, ...renewal, ...milliseconds],
};
