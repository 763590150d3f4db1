import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

const maxTtlSeconds = 9_000_000_000n;
const largestId = 2n ** 63n - 1n;

const ids: Case[] = [
  {
    name: 'chooses a positive id for id 0, another each time',
    run: async (t) => {
      const ids = [await t.grant(), await t.grant(), await t.grant()];
      for (const id of ids) expect(id).toBeGreaterThan(0n);
      expect(new Set(ids).size).toBe(ids.length);
    },
  },
  {
    name: 'accepts a given id, also a negative one and the largest',
    run: async (t) => {
      for (const id of [7_587_000_000_000_001n, -7n, -(2n ** 63n), largestId]) {
        const granted = await t.grant(60n, id);
        expect(granted).toBe(id);
        expect(await t.ttlOf(id)).toBeGreaterThan(0n);
      }
    },
  },
  {
    name: 'refuses an id that is in use, and accepts it again after its revocation',
    run: async (t) => {
      const id = await t.grant();
      expect(await refusalOf(t.lease.leaseGrant({ TTL: 60n, ID: id }))).toEqual(refused.leaseExists);
      await t.lease.leaseRevoke({ ID: id });
      expect(await t.grant(60n, id)).toBe(id);
    },
  },
  {
    name: 'attaches keys to a lease with a negative id',
    run: async (t) => {
      const id = await t.grant(60n, -4242n);
      await t.put('a', '1', id);
      expect(await t.get('a')).toMatchObject({ lease: id });
      await t.lease.leaseRevoke({ ID: id });
      expect(await t.get('a')).toBeUndefined();
    },
  },
];

const ttls: Case[] = [
  {
    name: 'returns the TTL in seconds, and creates no revision',
    run: async (t) => {
      const before = await t.revision();
      const reply = await t.lease.leaseGrant({ TTL: 60n });
      t.cleanUp(() => t.lease.leaseRevoke({ ID: reply.ID }));
      expect(reply).toMatchObject({ TTL: 60n, error: '' });
      expect(reply.header?.revision).toBe(before);
      expect(await t.revision()).toBe(before);
    },
  },
  {
    name: 'raises a TTL of zero or less to the shortest',
    run: async (t) => {
      for (const TTL of [0n, -1n, -(2n ** 63n)]) {
        const reply = await t.lease.leaseGrant({ TTL });
        t.cleanUp(() => t.lease.leaseRevoke({ ID: reply.ID }).catch(() => undefined));
        expect(reply.TTL).toBe(1n);
        expect((await t.lease.leaseTimeToLive({ ID: reply.ID })).grantedTTL).toBe(1n);
      }
    },
  },
  {
    name: 'accepts the longest TTL and refuses a longer one',
    run: async (t) => {
      const id = await t.grant(maxTtlSeconds);
      expect((await t.lease.leaseTimeToLive({ ID: id })).grantedTTL).toBe(maxTtlSeconds);
      for (const TTL of [maxTtlSeconds + 1n, 2n ** 63n - 1n]) {
        expect(await refusalOf(t.lease.leaseGrant({ TTL }))).toEqual(refused.ttlTooLarge);
      }
    },
  },
  {
    name: 'refuses a TTL that is too long before an id that is in use',
    run: async (t) => {
      const ID = await t.grant();
      expect(await refusalOf(t.lease.leaseGrant({ TTL: maxTtlSeconds + 1n, ID }))).toEqual(refused.ttlTooLarge);
    },
  },
  {
    name: 'leaves no lease after a refusal',
    run: async (t) => {
      const ID = 987_654_321_987n;
      await refusalOf(t.lease.leaseGrant({ TTL: maxTtlSeconds + 1n, ID }));
      expect(await t.ttlOf(ID)).toBe(-1n);
    },
  },
];

const extensions: Case[] = [
  {
    name: 'prefers a TTL in milliseconds to one in seconds',
    tenureOnly: 'TTL_ms is an extension field',
    run: async (t) => {
      const reply = await t.lease.leaseGrant({ TTL: 500n, TTLMs: 250_500n });
      t.cleanUp(() => t.lease.leaseRevoke({ ID: reply.ID }).catch(() => undefined));
      expect(reply).toMatchObject({ TTL: 251n, TTLMs: 250_500n, ttlRaised: false });
      const ttl = await t.lease.leaseTimeToLive({ ID: reply.ID });
      expect(ttl).toMatchObject({ grantedTTL: 251n, grantedTTLMs: 250_500n });
      expect(ttl.TTLMs).toBeGreaterThan(200_000n);
      expect(ttl.TTLMs).toBeLessThanOrEqual(250_500n);
    },
  },
  {
    name: 'answers milliseconds for a TTL in seconds',
    tenureOnly: 'TTL_ms is an extension field',
    run: async (t) => {
      const reply = await t.lease.leaseGrant({ TTL: 7n });
      t.cleanUp(() => t.lease.leaseRevoke({ ID: reply.ID }));
      expect(reply).toMatchObject({ TTL: 7n, TTLMs: 7000n, ttlRaised: false });
    },
  },
  {
    name: 'says that it raised a TTL below the shortest',
    tenureOnly: 'ttl_raised is an extension field, and so is a TTL in milliseconds',
    run: async (t) => {
      for (const [request, expected] of [
        [{ TTL: 0n }, { TTL: 1n, TTLMs: 1000n, ttlRaised: true }],
        [{ TTLMs: 5n }, { TTL: 1n, TTLMs: 100n, ttlRaised: true }],
        [{ TTLMs: -5n }, { TTL: 1n, TTLMs: 100n, ttlRaised: true }],
        [{ TTLMs: 100n }, { TTL: 1n, TTLMs: 100n, ttlRaised: false }],
      ] as const) {
        const reply = await t.lease.leaseGrant(request);
        t.cleanUp(() => t.lease.leaseRevoke({ ID: reply.ID }).catch(() => undefined));
        expect(reply).toMatchObject(expected);
      }
    },
  },
  {
    name: 'refuses a TTL in milliseconds beyond the longest',
    tenureOnly: 'TTL_ms is an extension field',
    run: async (t) => {
      const TTLMs = maxTtlSeconds * 1000n + 1n;
      expect(await refusalOf(t.lease.leaseGrant({ TTLMs }))).toEqual(refused.ttlTooLarge);
      expect(await refusalOf(t.lease.leaseGrant({ TTLMs: 2n ** 63n - 1n }))).toEqual(refused.ttlTooLarge);
    },
  },
  {
    name: 'keeps a label and shows it',
    tenureOnly: 'label is an extension field',
    run: async (t) => {
      const { ID } = await t.lease.leaseGrant({ TTL: 60n, label: 'worker 7 · größe' });
      t.cleanUp(() => t.lease.leaseRevoke({ ID }));
      expect(await t.lease.leaseTimeToLive({ ID })).toMatchObject({ label: 'worker 7 · größe' });
      const { leases } = await t.lease.leaseLeases({ details: true });
      expect(leases.find((lease) => lease.ID === ID)).toMatchObject({ label: 'worker 7 · größe' });
    },
  },
];

export const leaseGrant: CaseGroup = { name: 'Lease.LeaseGrant', cases: [...ids, ...ttls, ...extensions] };
