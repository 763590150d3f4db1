import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

const unknownLease = 0x7fffffffn;

const plain: Case[] = [
  {
    name: 'creates a key at the next revision, with version 1',
    run: async (t) => {
      const before = await t.revision();
      const reply = await t.kv.put({ key: t.key('a'), value: bytes('1') });
      expect(reply.header?.revision).toBe(before + 1n);
      expect(reply.prevKv).toBeUndefined();
      const expected = { createRevision: before + 1n, modRevision: before + 1n, version: 1n, lease: 0n };
      expect(await t.get('a')).toMatchObject(expected);
    },
  },
  {
    name: 'counts the versions of a key, and restarts after its deletion',
    run: async (t) => {
      const created = await t.put('a', '1');
      const modified = await t.put('a', '1');
      expect(await t.get('a')).toMatchObject({ createRevision: created, modRevision: modified, version: 2n });
      await t.delete('a');
      const again = await t.put('a', '1');
      expect(await t.get('a')).toMatchObject({ createRevision: again, modRevision: again, version: 1n });
    },
  },
  {
    name: 'keeps an empty value',
    run: async (t) => {
      await t.put('a', 'full');
      await t.put('a', '');
      const reply = await t.kv.range({ key: t.key('a') });
      expect(t.pairs(reply.kvs)).toEqual(['a=']);
      expect(reply.kvs[0]?.version).toBe(2n);
    },
  },
  {
    name: 'answers the previous pair with prev_kv',
    run: async (t) => {
      const lease = await t.grant();
      const first = await t.put('a', '1', lease);
      const reply = await t.kv.put({ key: t.key('a'), value: bytes('2'), prevKv: true });
      expect(t.pairs(reply.prevKv === undefined ? [] : [reply.prevKv])).toEqual(['a=1']);
      expect(reply.prevKv).toMatchObject({ createRevision: first, modRevision: first, version: 1n, lease });
    },
  },
  {
    name: 'answers no previous pair for a new key, or for one that was deleted',
    run: async (t) => {
      expect((await t.kv.put({ key: t.key('a'), prevKv: true })).prevKv).toBeUndefined();
      await t.delete('a');
      expect((await t.kv.put({ key: t.key('a'), prevKv: true })).prevKv).toBeUndefined();
    },
  },
  {
    name: 'refuses an empty key',
    run: async (t) => {
      expect(await refusalOf(t.kv.put({ key: bytes(''), value: bytes('v') }))).toEqual(refused.emptyKey);
    },
  },
];

const ignoreValue: Case[] = [
  {
    name: 'keeps the value with ignore_value and moves the key to the lease that is given',
    run: async (t) => {
      const lease = await t.grant();
      const created = await t.put('a', 'kept');
      const reply = await t.kv.put({ key: t.key('a'), ignoreValue: true, lease, prevKv: true });
      expect(reply.prevKv).toMatchObject({ modRevision: created, lease: 0n });
      const kv = await t.get('a');
      expect(kv).toMatchObject({ version: 2n, modRevision: created + 1n, lease });
      expect(t.pairs(kv === undefined ? [] : [kv])).toEqual(['a=kept']);
    },
  },
  {
    name: 'detaches the key from its lease with ignore_value and no lease',
    run: async (t) => {
      const lease = await t.grant();
      await t.put('a', 'kept', lease);
      await t.kv.put({ key: t.key('a'), ignoreValue: true });
      expect(await t.get('a')).toMatchObject({ lease: 0n, version: 2n });
      expect((await t.lease.leaseTimeToLive({ ID: lease, keys: true })).keys).toEqual([]);
    },
  },
  {
    name: 'refuses a value with ignore_value, also for a key that does not exist',
    run: async (t) => {
      const put = { key: t.key('a'), value: bytes('v'), ignoreValue: true };
      expect(await refusalOf(t.kv.put(put))).toEqual(refused.valueProvided);
      await t.put('a', '1');
      const before = await t.revision();
      expect(await refusalOf(t.kv.put(put))).toEqual(refused.valueProvided);
      expect(await t.revision()).toBe(before);
    },
  },
  {
    name: 'refuses ignore_value for a key that does not exist, or no longer',
    run: async (t) => {
      const put = { key: t.key('a'), ignoreValue: true };
      expect(await refusalOf(t.kv.put(put))).toEqual(refused.keyNotFound);
      await t.put('a', '1');
      const deleted = await t.delete('a');
      expect(await refusalOf(t.kv.put(put))).toEqual(refused.keyNotFound);
      expect(await t.revision()).toBe(deleted);
    },
  },
];

const leases: Case[] = [
  {
    name: 'keeps the lease with ignore_lease',
    run: async (t) => {
      const lease = await t.grant();
      await t.put('a', '1', lease);
      await t.kv.put({ key: t.key('a'), value: bytes('2'), ignoreLease: true });
      expect(await t.get('a')).toMatchObject({ lease, version: 2n });
    },
  },
  {
    name: 'keeps the absence of a lease with ignore_lease',
    run: async (t) => {
      await t.put('a', '1');
      await t.kv.put({ key: t.key('a'), value: bytes('2'), ignoreLease: true });
      expect(await t.get('a')).toMatchObject({ lease: 0n, version: 2n });
    },
  },
  {
    name: 'makes a new version of the same content with ignore_value and ignore_lease',
    run: async (t) => {
      const lease = await t.grant();
      await t.put('a', 'kept', lease);
      await t.kv.put({ key: t.key('a'), ignoreValue: true, ignoreLease: true });
      const kv = await t.get('a');
      expect(kv).toMatchObject({ lease, version: 2n });
      expect(t.pairs(kv === undefined ? [] : [kv])).toEqual(['a=kept']);
    },
  },
  {
    name: 'refuses a lease with ignore_lease, before it looks for the key or the lease',
    run: async (t) => {
      const put = { key: t.key('a'), lease: unknownLease, ignoreLease: true };
      expect(await refusalOf(t.kv.put(put))).toEqual(refused.leaseProvided);
    },
  },
  {
    name: 'refuses ignore_lease for a key that does not exist',
    run: async (t) => {
      const put = { key: t.key('a'), value: bytes('v'), ignoreLease: true };
      expect(await refusalOf(t.kv.put(put))).toEqual(refused.keyNotFound);
    },
  },
  {
    name: 'refuses a lease that does not exist and writes nothing',
    run: async (t) => {
      const before = await t.put('a', '1');
      for (const lease of [unknownLease, -5n]) {
        const put = t.kv.put({ key: t.key('a'), value: bytes('2'), lease });
        expect(await refusalOf(put)).toEqual(refused.leaseNotFound);
      }
      expect(await t.revision()).toBe(before);
      expect(t.pairs((await t.kv.range({ key: t.key('a') })).kvs)).toEqual(['a=1']);
    },
  },
  {
    name: 'names the missing lease before the missing key',
    run: async (t) => {
      const put = t.kv.put({ key: t.key('a'), ignoreValue: true, lease: unknownLease });
      expect(await refusalOf(put)).toEqual(refused.leaseNotFound);
    },
  },
  {
    name: 'refuses a lease that was revoked',
    run: async (t) => {
      const lease = await t.grant();
      await t.lease.leaseRevoke({ ID: lease });
      expect(await refusalOf(t.put('a', '1', lease))).toEqual(refused.leaseNotFound);
    },
  },
];

export const kvPut: CaseGroup = { name: 'KV.Put', cases: [...plain, ...ignoreValue, ...leases] };
