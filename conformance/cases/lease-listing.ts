import { expect } from 'vitest';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';

async function listed(t: CaseContext, among: readonly bigint[]): Promise<bigint[]> {
  const { leases } = await t.lease.leaseLeases({});
  return leases.map(({ ID }) => ID).filter((id) => among.includes(id));
}

const timeToLive: Case[] = [
  {
    name: 'answers the remaining and the granted TTL',
    run: async (t) => {
      const ID = await t.grant(100n);
      const revision = await t.revision();
      const reply = await t.lease.leaseTimeToLive({ ID });
      expect(reply).toMatchObject({ ID, grantedTTL: 100n, keys: [] });
      expect(reply.TTL).toBeGreaterThanOrEqual(90n);
      expect(reply.TTL).toBeLessThanOrEqual(99n);
      expect(reply.header?.revision).toBe(revision);
    },
  },
  {
    name: 'answers the keys of the lease, and only when asked',
    run: async (t) => {
      const ID = await t.grant();
      for (const name of ['b', '\xff', 'a', 'c']) await t.put(name, '1', ID);
      await t.delete('c');
      await t.put('none', '1');
      const { keys } = await t.lease.leaseTimeToLive({ ID, keys: true });
      expect(keys.map((key) => t.nameOf(key)).toSorted()).toEqual(['a', 'b', '\xff']);
      expect((await t.lease.leaseTimeToLive({ ID })).keys).toEqual([]);
    },
  },
  {
    name: 'answers TTL -1 for a lease that does not exist',
    run: async (t) => {
      const gone = await t.grant();
      await t.lease.leaseRevoke({ ID: gone });
      for (const ID of [gone, 0x7fffffffn, -3n, 0n]) {
        const reply = await t.lease.leaseTimeToLive({ ID, keys: true });
        expect(reply).toMatchObject({ ID, TTL: -1n, grantedTTL: 0n, keys: [] });
      }
    },
  },
  {
    name: 'counts whole seconds that remain: right after the grant one less than was granted',
    run: async (t) => {
      // A delay of a second in between invalidates one attempt, and not all ten.
      const seen = new Set<bigint>();
      for (let round = 0; round < 10; round += 1) {
        const { TTL, grantedTTL } = await t.lease.leaseTimeToLive({ ID: await t.grant(90n) });
        expect(grantedTTL).toBe(90n);
        expect(TTL).toBeLessThan(90n);
        seen.add(TTL);
      }
      expect([...seen]).toContain(89n);
    },
  },
  {
    name: 'counts no second in the last one of a lease, which lives on',
    run: async (t) => {
      const ID = await t.grant(2n);
      await t.put('a', '1', ID);
      await t.until('less than a second remains', async () => (await t.lease.leaseTimeToLive({ ID })).TTL < 1n);
      const reply = await t.lease.leaseTimeToLive({ ID, keys: true });
      expect(reply).toMatchObject({ TTL: 0n, grantedTTL: 2n });
      expect(reply.keys).toHaveLength(1);
    },
  },
  {
    name: 'returns exact milliseconds beside the seconds: the granted TTL is rounded up, the remaining one down',
    tenureOnly: 'TTL_ms is an extension field',
    run: async (t) => {
      const { ID } = await t.lease.leaseGrant({ TTLMs: 600_700n });
      t.cleanUp(() => t.lease.leaseRevoke({ ID }).catch(() => undefined));
      const reply = await t.lease.leaseTimeToLive({ ID });
      expect(reply).toMatchObject({ grantedTTL: 601n, grantedTTLMs: 600_700n });
      expect(reply.TTLMs).toBeLessThanOrEqual(600_700n);
      expect(reply.TTLMs).toBeGreaterThan(500_000n);
      expect(reply.TTL).toBe((reply.TTLMs - 1n) / 1000n);
      const unknown = await t.lease.leaseTimeToLive({ ID: 0x7fffffffn });
      expect(unknown).toMatchObject({ TTL: -1n, TTLMs: -1n, grantedTTLMs: 0n });
    },
  },
];

const leases: Case[] = [
  {
    name: 'lists the leases, those that end first before the others',
    run: async (t) => {
      const long = await t.grant(900n);
      const short = await t.grant(100n);
      const middle = await t.grant(500n);
      expect(await listed(t, [long, short, middle])).toEqual([short, middle, long]);
    },
  },
  {
    name: 'lists leases of one TTL in the order of their grants',
    run: async (t) => {
      const ids: bigint[] = [];
      for (let index = 0; index < 5; index += 1) ids.push(await t.grant(300n));
      expect(await listed(t, ids)).toEqual(ids);
    },
  },
  {
    name: 'lists a renewed lease by its new end',
    run: async (t) => {
      const ids = [await t.grant(300n), await t.grant(300n), await t.grant(300n)];
      const [first = 0n, ...rest] = ids;
      // Expiries are compared by the millisecond at least, so one has to pass.
      const grantedAt = performance.now();
      await t.until('some milliseconds have passed', async () => performance.now() - grantedAt > 5);
      await t.keepAliveStream().renew(first);
      expect(await listed(t, ids)).toEqual([...rest, first]);
    },
  },
  {
    name: 'lists a revoked lease no more',
    run: async (t) => {
      const [first, second] = [await t.grant(), await t.grant()];
      await t.lease.leaseRevoke({ ID: first });
      expect(await listed(t, [first, second])).toEqual([second]);
    },
  },
  {
    name: "names the store's revision in the header",
    run: async (t) => {
      const revision = await t.put('a');
      expect((await t.lease.leaseLeases({})).header?.revision).toBe(revision);
    },
  },
  {
    name: 'lists a lease on every connection as soon as its grant was answered',
    tenureOnly: 'etcd lists the leases of the member that is asked, without asking the leader',
    run: async (t) => {
      for (let index = 0; index < 20; index += 1) {
        const id = await t.grant();
        expect(await listed(t, [id])).toEqual([id]);
      }
    },
  },
  {
    name: 'lists ids alone where no details are asked for',
    run: async (t) => {
      const { ID } = await t.lease.leaseGrant({ TTL: 60n, label: 'not shown' });
      t.cleanUp(() => t.lease.leaseRevoke({ ID }));
      const status = (await t.lease.leaseLeases({})).leases.find((lease) => lease.ID === ID);
      expect(status).toMatchObject({ ID, TTLMs: 0n, grantedTTLMs: 0n, label: '' });
    },
  },
  {
    name: 'lists the remaining and the granted milliseconds where they are asked for',
    tenureOnly: 'LeaseStatus holds the id alone in etcd',
    run: async (t) => {
      const { ID } = await t.lease.leaseGrant({ TTLMs: 654_321n });
      t.cleanUp(() => t.lease.leaseRevoke({ ID }));
      const listing = await t.lease.leaseLeases({ details: true });
      const status = listing.leases.find((lease) => lease.ID === ID);
      expect(status?.grantedTTLMs).toBe(654_321n);
      expect(status?.TTLMs).toBeGreaterThan(600_000n);
      expect(status?.TTLMs).toBeLessThanOrEqual(654_321n);
    },
  },
];

export const leaseTimeToLive: CaseGroup = { name: 'Lease.LeaseTimeToLive', cases: timeToLive };
export const leaseLeases: CaseGroup = { name: 'Lease.LeaseLeases', cases: leases };
