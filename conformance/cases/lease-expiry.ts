import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

/** The client's clock and the server's may round differently. */
const clockSlackMs = 5;
/** Actions before the end of such a lease happen well before, also on a slow machine. */
const shortSeconds = 2n;
const shortMs = 2000;
const attempts = 5;

const gone = (t: CaseContext, id: bigint) => async (): Promise<boolean> => (await t.ttlOf(id)) === -1n;

interface Renewed {
  readonly lease: bigint;
  /** When the last renewal was sent. */
  readonly renewedAt: number;
}

/**
 * A lease that was renewed continuously for `forMs`. It may expire only if a TTL had passed between sending a renewal
 * and the reply to the next: then this process was delayed, and retries with another one.
 */
async function renewedLease(
  t: CaseContext,
  grant: () => Promise<bigint>,
  { ttlMs, forMs }: { readonly ttlMs: number; readonly forMs: number },
): Promise<Renewed> {
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const start = performance.now();
    let renewedAt = start;
    let lostAfterMs: number | undefined;
    const lease = await grant();
    const stream = t.keepAliveStream();
    await t.until('it was renewed for long enough', async () => {
      const sentAt = performance.now();
      const { TTL } = await stream.renew(lease);
      if (TTL === 0n) lostAfterMs = performance.now() - renewedAt;
      else expect(TTL).toBe(BigInt(Math.ceil(ttlMs / 1000)));
      renewedAt = sentAt;
      return lostAfterMs !== undefined || sentAt - start > forMs;
    });
    if (lostAfterMs === undefined) return { lease, renewedAt };
    expect(lostAfterMs, 'a renewed lease was lost').toBeGreaterThan(ttlMs);
  }
  throw new Error(`the renewing was held up in each of ${attempts} attempts`);
}

/**
 * A key of a lease of 1500 ms and one of a lease of 150 ms, granted one after the other: the second expires first. If
 * the machine was delayed before both exist, it retries.
 */
async function shortBesideLong(t: CaseContext, attempt: number): Promise<{ sentAt: number; name: string }> {
  const longSentAt = performance.now();
  const { ID: long } = await t.lease.leaseGrant({ TTLMs: 1500n });
  const sentAt = performance.now();
  const { ID: short } = await t.lease.leaseGrant({ TTLMs: 150n });
  const name = `short ${attempt}`;
  const put = await t.put(name, '', short).catch((error: unknown) => error);
  const answeredAt = performance.now();
  await t.put(`long ${attempt}`, '', long).catch(() => undefined);
  if (typeof put === 'bigint' && answeredAt - longSentAt < 1000) return { sentAt, name };
  if (typeof put !== 'bigint') expect(answeredAt - sentAt, `the put failed: ${String(put)}`).toBeGreaterThan(150);
  if (attempt === attempts) throw new Error(`the machine was held up in each of ${attempts} attempts`);
  return shortBesideLong(t, attempt + 1);
}

const endOfLease: Case[] = [
  {
    name: 'deletes the keys of an expired lease at one revision, in key order, and not early',
    run: async (t) => {
      const sentAt = performance.now();
      const lease = await t.grant(shortSeconds);
      for (const name of ['b', 'c', 'a']) await t.put(name, '1', lease);
      const base = await t.put('other');
      const watch = t.watchStream();
      const { watchId } = await watch.create({ ...t.all(), prevKv: true });
      const replies = await watch.replies(watchId, 3);
      expect(performance.now() - sentAt).toBeGreaterThanOrEqual(shortMs - clockSlackMs);
      expect(replies).toHaveLength(1);
      const events = replies[0]?.events ?? [];
      expect(t.events(events, base)).toEqual(['DELETE a +1', 'DELETE b +1', 'DELETE c +1']);
      expect(events.map(({ prevKv }) => prevKv?.lease)).toEqual([lease, lease, lease]);
      expect(await t.ttlOf(lease)).toBe(-1n);
      expect(await t.revision()).toBe(base + 1n);
    },
  },
  {
    name: 'creates no revision for an expired lease without keys',
    run: async (t) => {
      const lease = await t.grant(shortSeconds);
      await t.put('moved', '1', lease);
      const revision = await t.put('moved', '2');
      await t.until('the lease is gone', gone(t, lease));
      expect(await t.revision()).toBe(revision);
      expect(await t.get('moved')).toMatchObject({ version: 2n });
    },
  },
  {
    name: 'no longer knows an expired lease, and accepts its id again',
    run: async (t) => {
      const lease = await t.grant(shortSeconds);
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
      const [short, long] = [await t.grant(shortSeconds), await t.grant()];
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
        await t.put(`key${index}`, '1', await t.grant(shortSeconds));
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
      const granted = async (): Promise<bigint> => {
        const id = await t.grant(shortSeconds);
        await t.put('a', '1', id);
        return id;
      };
      const { lease, renewedAt } = await renewedLease(t, granted, { ttlMs: shortMs, forMs: 1.5 * shortMs });
      expect(await t.get('a')).toMatchObject({ lease });
      await t.until('the lease is gone', gone(t, lease));
      expect(performance.now() - renewedAt).toBeGreaterThanOrEqual(shortMs - clockSlackMs);
      expect(await t.get('a')).toBeUndefined();
    },
  },
  {
    name: 'is not renewed by a put, a look or a listing',
    run: async (t) => {
      const lease = await t.grant(shortSeconds);
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
    name: 'ends a lease of 150 ms on time, long before one of 1500 ms that was granted before it',
    tenureOnly: 'a TTL in milliseconds is an extension, and etcd looks for expired leases twice a second',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create({ ...t.all(), filters: [0] });
      const { sentAt, name } = await shortBesideLong(t, 1);
      const ended: string[] = [];
      while (ended.at(-1) !== name) {
        const [event] = await watch.events(watchId, 1);
        ended.push(t.nameOf(event?.kv?.key ?? new Uint8Array()));
      }
      expect(performance.now() - sentAt).toBeGreaterThanOrEqual(150 - clockSlackMs);
      expect(ended).not.toContain(name.replace('short', 'long'));
    },
  },
  {
    name: 'keeps a lease of half a second that is renewed every few milliseconds',
    tenureOnly: 'a TTL in milliseconds is an extension',
    run: async (t) => {
      const granted = async (): Promise<bigint> => (await t.lease.leaseGrant({ TTLMs: 500n })).ID;
      const { lease } = await renewedLease(t, granted, { ttlMs: 500, forMs: 2000 });
      await t.until('the lease is gone', gone(t, lease));
    },
  },
  {
    name: 'shows no lease that is past its end: it is alive with milliseconds left, or gone',
    tenureOnly: 'etcd answers a TTL of 0 or less for a lease that it has yet to revoke',
    run: async (t) => {
      const { ID } = await t.lease.leaseGrant({ TTLMs: 200n });
      await t.until('the lease is gone', async () => {
        const { TTL, TTLMs } = await t.lease.leaseTimeToLive({ ID });
        if (TTL === -1n) return true;
        expect(TTL).toBe(0n);
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
