import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import type { CaseGroup } from './case.ts';
import { refused } from './refused.ts';

export const kvDelete: CaseGroup = {
  name: 'KV.DeleteRange',
  cases: [
    {
      name: 'deletes one key at the next revision',
      run: async (t) => {
        const revision = await t.put('a', '1');
        const reply = await t.kv.deleteRange({ key: t.key('a') });
        expect(reply).toMatchObject({ deleted: 1n, prevKvs: [] });
        expect(reply.header?.revision).toBe(revision + 1n);
        expect(await t.get('a')).toBeUndefined();
      },
    },
    {
      name: 'creates no revision when there is nothing to delete',
      run: async (t) => {
        const revision = await t.put('a', '1');
        for (const range of [{ key: t.key('missing') }, t.all('none'), { key: t.key('b'), rangeEnd: t.key('a') }]) {
          const reply = await t.kv.deleteRange({ ...range, prevKv: true });
          expect(reply).toMatchObject({ deleted: 0n, prevKvs: [] });
          expect(reply.header?.revision).toBe(revision);
        }
        expect(await t.revision()).toBe(revision);
      },
    },
    {
      name: 'deletes a range at one revision and returns its keys, in key order',
      run: async (t) => {
        for (const name of ['c', 'a', 'd', 'b']) await t.put(name, name.toUpperCase());
        const before = await t.revision();
        const reply = await t.kv.deleteRange({ key: t.key('a'), rangeEnd: t.key('d'), prevKv: true });
        expect(reply.deleted).toBe(3n);
        expect(reply.header?.revision).toBe(before + 1n);
        expect(t.pairs(reply.prevKvs)).toEqual(['a=A', 'b=B', 'c=C']);
        expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['d=D']);
      },
    },
    {
      name: 'answers the whole previous pair, its lease included',
      run: async (t) => {
        const lease = await t.grant();
        const created = await t.put('a', '1', lease);
        const { prevKvs } = await t.kv.deleteRange({ key: t.key('a'), prevKv: true });
        expect(prevKvs[0]).toMatchObject({ createRevision: created, modRevision: created, version: 1n, lease });
      },
    },
    {
      name: 'detaches the deleted key from its lease',
      run: async (t) => {
        const lease = await t.grant();
        await t.put('a', '1', lease);
        await t.put('b', '1', lease);
        await t.delete('a');
        const { keys } = await t.lease.leaseTimeToLive({ ID: lease, keys: true });
        expect(keys.map((key) => t.nameOf(key))).toEqual(['b']);
        await t.put('a', '2');
        await t.lease.leaseRevoke({ ID: lease });
        expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['a=2']);
      },
    },
    {
      name: 'deletes nothing twice',
      run: async (t) => {
        await t.put('a', '1');
        const first = await t.delete('a');
        const second = await t.kv.deleteRange({ key: t.key('a') });
        expect(second.deleted).toBe(0n);
        expect(second.header?.revision).toBe(first);
      },
    },
    {
      name: 'refuses an empty key',
      run: async (t) => {
        expect(await refusalOf(t.kv.deleteRange({ key: bytes('') }))).toEqual(refused.emptyKey);
        const toTheEnd = t.kv.deleteRange({ key: bytes(''), rangeEnd: bytes('\0') });
        expect(await refusalOf(toTheEnd)).toEqual(refused.emptyKey);
      },
    },
  ],
};
