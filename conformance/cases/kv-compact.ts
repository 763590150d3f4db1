import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import type { CaseGroup } from './case.ts';
import { refused } from './refused.ts';
import { op } from './txn-parts.ts';

export const kvCompact: CaseGroup = {
  name: 'KV.Compact',
  cases: [
    {
      name: 'keeps the current state and the later revisions',
      run: async (t) => {
        for (const value of ['1', '2', '3']) await t.put('a', value);
        const compacted = await t.put('b', '1');
        await t.put('a', '4');
        const reply = await t.kv.compact({ revision: compacted });
        expect(reply.header?.revision).toBe(compacted + 1n);
        expect(await t.revision()).toBe(compacted + 1n);
        expect(t.pairs((await t.kv.range({ ...t.all(), revision: compacted })).kvs)).toEqual(['a=3', 'b=1']);
        expect(t.pairs((await t.kv.range({ ...t.all(), revision: compacted + 1n })).kvs)).toEqual(['a=4', 'b=1']);
        expect(await t.get('a')).toMatchObject({ version: 4n });
      },
    },
    {
      name: 'refuses reads below the compacted revision, alone and in a transaction',
      run: async (t) => {
        await t.put('a', '1');
        const compacted = await t.put('a', '2');
        await t.kv.compact({ revision: compacted });
        const past = { key: t.key('a'), revision: compacted - 1n };
        expect(await refusalOf(t.kv.range(past))).toEqual(refused.compacted);
        expect(await refusalOf(t.kv.range({ ...past, serializable: true }))).toEqual(refused.compacted);
        expect(await refusalOf(t.kv.range({ ...past, revision: 1n }))).toEqual(refused.compacted);
        expect(await refusalOf(t.kv.txn({ success: [op.range(past)] }))).toEqual(refused.compacted);
        const mixed = [op.put({ key: t.key('b') }), op.range(past)];
        expect(await refusalOf(t.kv.txn({ success: mixed }))).toEqual(refused.compacted);
        expect(await t.get('b')).toBeUndefined();
      },
    },
    {
      name: 'refuses a revision that was compacted already, and those below it',
      run: async (t) => {
        await t.put('a', '1');
        const revision = await t.put('a', '2');
        await t.kv.compact({ revision });
        for (const again of [revision, revision - 1n, 1n]) {
          expect(await refusalOf(t.kv.compact({ revision: again }))).toEqual(refused.compacted);
        }
      },
    },
    {
      name: 'refuses revision 0 and negative ones as compacted',
      run: async (t) => {
        const revision = await t.put('a');
        await t.kv.compact({ revision });
        for (const impossible of [0n, -1n, -(2n ** 63n)]) {
          expect(await refusalOf(t.kv.compact({ revision: impossible }))).toEqual(refused.compacted);
        }
      },
    },
    {
      name: 'refuses a revision of the future',
      run: async (t) => {
        const revision = await t.put('a');
        for (const future of [revision + 1n, 2n ** 63n - 1n]) {
          expect(await refusalOf(t.kv.compact({ revision: future }))).toEqual(refused.futureRevision);
        }
      },
    },
    {
      name: 'compacts up to the current revision, and keeps it readable',
      run: async (t) => {
        await t.put('a', '1');
        const revision = await t.put('b', '1');
        await t.kv.compact({ revision });
        expect(t.pairs((await t.kv.range({ ...t.all(), revision })).kvs)).toEqual(['a=1', 'b=1']);
        expect(await t.revision()).toBe(revision);
      },
    },
    {
      name: 'keeps a deleted key readable up to its deletion',
      run: async (t) => {
        const put = await t.put('a', '1');
        const deleted = await t.delete('a');
        const last = await t.put('b', '1');
        await t.kv.compact({ revision: put });
        expect(await t.get('a', put)).toMatchObject({ version: 1n });
        expect(await t.get('a', deleted)).toBeUndefined();
        await t.kv.compact({ revision: deleted });
        expect(await t.get('a', deleted)).toBeUndefined();
        expect(await t.get('a', last)).toBeUndefined();
        expect(await refusalOf(t.get('a', put))).toEqual(refused.compacted);
      },
    },
    {
      name: 'restarts the versions when a key is put again after its deletion was compacted',
      run: async (t) => {
        await t.put('a', '1');
        const deleted = await t.delete('a');
        await t.kv.compact({ revision: deleted });
        const again = await t.put('a', '2');
        expect(await t.get('a')).toMatchObject({ createRevision: again, version: 1n });
      },
    },
    {
      name: 'waits for the physical removal when asked to',
      run: async (t) => {
        for (let index = 0; index < 50; index += 1) await t.put('a', `${index}`);
        const revision = await t.revision();
        await t.kv.compact({ revision, physical: true });
        expect(t.pairs((await t.kv.range({ key: t.key('a'), revision })).kvs)).toEqual(['a=49']);
        expect(await refusalOf(t.get('a', revision - 1n))).toEqual(refused.compacted);
      },
    },
    {
      name: 'leaves the keys on their leases',
      run: async (t) => {
        const lease = await t.grant();
        await t.put('a', '1', lease);
        await t.kv.compact({ revision: await t.put('b', '1') });
        await t.lease.leaseRevoke({ ID: lease });
        expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['b=1']);
      },
    },
  ],
};

/**
 * Compaction below the first revision. etcd begins with a compact revision of -1: so 0 may be compacted once, nothing
 * below it ever, and a range of a transaction, for which a negative revision is in the past, may name -1 until then.
 */
export const kvCompactFromTheStart: CaseGroup = {
  name: 'KV.Compact, of a store that was never compacted',
  server: {},
  cases: [
    {
      name: 'refuses a negative revision as compacted, and changes nothing by it',
      run: async (t) => {
        const revision = await t.put('a', '1');
        for (const negative of [-(2n ** 63n), -2n, -1n]) {
          for (const physical of [false, true]) {
            expect(await refusalOf(t.kv.compact({ revision: negative, physical }))).toEqual(refused.compacted);
          }
        }
        expect((await t.maintenance.hashKV({})).compactRevision).toBe(-1n);
        expect((await t.kv.txn({ success: [op.range({ key: t.key('a'), revision: -1n })] })).succeeded).toBe(true);
        expect(await refusalOf(t.kv.txn({ success: [op.range({ key: t.key('a'), revision: -2n })] }))).toEqual(
          refused.compacted,
        );
        expect(await t.revision()).toBe(revision);
      },
    },
    {
      name: 'compacts revision 0 once, without removing anything',
      run: async (t) => {
        const revision = await t.put('a', '1');
        const reply = await t.kv.compact({ revision: 0n });
        expect(reply.header?.revision).toBe(revision);
        for (const again of [0n, -1n, -(2n ** 63n)]) {
          expect(await refusalOf(t.kv.compact({ revision: again }))).toEqual(refused.compacted);
        }
        expect((await t.maintenance.hashKV({})).compactRevision).toBe(0n);
        expect(await t.get('a', 1n)).toBeUndefined();
        expect(await t.get('a', -1n)).toMatchObject({ version: 1n });
        expect(await refusalOf(t.kv.txn({ success: [op.range({ key: t.key('a'), revision: -1n })] }))).toEqual(
          refused.compacted,
        );
        const watch = t.watchStream();
        const { watchId } = await watch.create({ key: t.key('a'), startRevision: 1n });
        expect(t.events(await watch.events(watchId, 1), revision)).toEqual(['PUT a=1 +0']);
        expect((await t.kv.compact({ revision: 1n })).header?.revision).toBe(revision);
      },
    },
  ],
};
