import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import { revisionOf } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';
import { op } from './txn-parts.ts';

const revocation: Case[] = [
  {
    name: 'deletes all keys of the lease at one revision, as one reply in key order to a watcher',
    run: async (t) => {
      const lease = await t.grant();
      for (const name of ['c', 'a', 'd', 'b']) await t.put(name, '1', lease);
      const base = await t.put('other', '1');
      const watch = t.watchStream();
      const { watchId } = await watch.create({ ...t.all(), prevKv: true });
      const reply = await t.lease.leaseRevoke({ ID: lease });
      expect(revisionOf(reply)).toBe(base + 1n);
      const [events, ...rest] = await watch.replies(watchId, 4);
      expect(rest).toEqual([]);
      expect(t.events(events?.events ?? [], base)).toEqual(['a', 'b', 'c', 'd'].map((name) => `DELETE ${name} +1`));
      expect(events?.events.map(({ prevKv }) => prevKv?.lease)).toEqual([lease, lease, lease, lease]);
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['other=1']);
      expect(await t.revision()).toBe(base + 1n);
    },
  },
  {
    name: 'creates no revision for a lease without keys',
    run: async (t) => {
      const before = await t.revision();
      const reply = await t.lease.leaseRevoke({ ID: await t.grant() });
      expect(revisionOf(reply)).toBe(before);
      expect(await t.revision()).toBe(before);
    },
  },
  {
    name: 'ends the lease',
    run: async (t) => {
      const ID = await t.grant();
      await t.lease.leaseRevoke({ ID });
      expect(await t.ttlOf(ID)).toBe(-1n);
      const { leases } = await t.lease.leaseLeases({});
      expect(leases.map((lease) => lease.ID)).not.toContain(ID);
      expect(await t.keepAliveStream().renew(ID)).toMatchObject({ TTL: 0n });
    },
  },
  {
    name: 'refuses a lease that does not exist, or no longer, or never could',
    run: async (t) => {
      const ID = await t.grant();
      await t.lease.leaseRevoke({ ID });
      for (const gone of [ID, 0x7fffffffn, -3n, 0n]) {
        expect(await refusalOf(t.lease.leaseRevoke({ ID: gone }))).toEqual(refused.leaseNotFound);
      }
    },
  },
];

const attachment: Case[] = [
  {
    name: 'leaves a key that was put again without a lease',
    run: async (t) => {
      const lease = await t.grant();
      await t.put('a', '1', lease);
      const revision = await t.put('a', '2');
      await t.lease.leaseRevoke({ ID: lease });
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['a=2']);
      expect(await t.revision()).toBe(revision);
    },
  },
  {
    name: 'leaves a key that was moved to another lease, which then deletes it',
    run: async (t) => {
      const [first, second] = [await t.grant(), await t.grant()];
      await t.put('a', '1', first);
      await t.put('b', '1', first);
      await t.put('a', '2', second);
      await t.lease.leaseRevoke({ ID: first });
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['a=2']);
      await t.lease.leaseRevoke({ ID: second });
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual([]);
    },
  },
  {
    name: 'deletes a key that was put again with ignore_lease',
    run: async (t) => {
      const lease = await t.grant();
      await t.put('a', '1', lease);
      await t.kv.put({ key: t.key('a'), value: bytes('2'), ignoreLease: true });
      await t.lease.leaseRevoke({ ID: lease });
      expect(await t.get('a')).toBeUndefined();
    },
  },
  {
    name: 'deletes a key that was attached twice, once',
    run: async (t) => {
      const lease = await t.grant();
      const base = await t.put('a', '1', lease);
      await t.put('a', '2', lease);
      const watch = t.watchStream();
      const { watchId } = await watch.create({ ...t.all(), startRevision: base });
      await t.lease.leaseRevoke({ ID: lease });
      expect(t.events(await watch.events(watchId, 3), base)).toEqual(['PUT a=1 +0', 'PUT a=2 +1', 'DELETE a +2']);
    },
  },
  {
    name: 'leaves a key that was deleted and put again without a lease',
    run: async (t) => {
      const lease = await t.grant();
      await t.put('a', '1', lease);
      await t.delete('a');
      await t.put('a', '2');
      await t.lease.leaseRevoke({ ID: lease });
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['a=2']);
    },
  },
  {
    name: 'deletes the keys that transactions attached, and keeps those that they detached',
    run: async (t) => {
      const lease = await t.grant();
      await t.put('detached', '1', lease);
      const value = bytes('2');
      await t.kv.txn({
        success: [
          op.put({ key: t.key('attached'), value, lease }),
          op.put({ key: t.key('detached'), value }),
          op.txn({ success: [op.put({ key: t.key('nested'), value, lease })] }),
        ],
      });
      await t.lease.leaseRevoke({ ID: lease });
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['detached=2']);
    },
  },
  {
    name: 'keeps no key on the lease for a write that was refused',
    run: async (t) => {
      const lease = await t.grant();
      const success = [op.put({ key: t.key('a'), lease }), op.range({ key: t.key('a'), revision: 2n ** 62n })];
      expect(await refusalOf(t.kv.txn({ success }))).toEqual(refused.futureRevision);
      expect((await t.lease.leaseTimeToLive({ ID: lease, keys: true })).keys).toEqual([]);
    },
  },
  {
    name: "gives a new lease under an old id none of the old one's keys",
    run: async (t) => {
      const ID = await t.grant();
      await t.put('a', '1', ID);
      await t.lease.leaseRevoke({ ID });
      await t.put('a', '2');
      await t.grant(60n, ID);
      expect((await t.lease.leaseTimeToLive({ ID, keys: true })).keys).toEqual([]);
      await t.lease.leaseRevoke({ ID });
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['a=2']);
    },
  },
];

export const leaseRevoke: CaseGroup = { name: 'Lease.LeaseRevoke', cases: [...revocation, ...attachment] };
