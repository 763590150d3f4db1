import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import type { CaseGroup } from './case.ts';
import { refused } from './refused.ts';

export const kvRangePast: CaseGroup = {
  name: 'KV.Range at a revision',
  cases: [
    {
      name: "answers the state as it was, with today's revision in the header",
      run: async (t) => {
        const first = await t.put('a', '1');
        const second = await t.put('b', '1');
        const third = await t.put('a', '2');
        const fourth = await t.delete('b');
        const fifth = await t.put('b', '2');
        const at = async (revision: bigint): Promise<string[]> => {
          const reply = await t.kv.range({ ...t.all(), revision });
          expect(reply.header?.revision).toBe(fifth);
          expect(reply.count).toBe(BigInt(reply.kvs.length));
          return t.pairs(reply.kvs);
        };
        expect(await at(first - 1n)).toEqual([]);
        expect(await at(first)).toEqual(['a=1']);
        expect(await at(second)).toEqual(['a=1', 'b=1']);
        expect(await at(third)).toEqual(['a=2', 'b=1']);
        expect(await at(fourth)).toEqual(['a=2']);
        expect(await at(fifth)).toEqual(['a=2', 'b=2']);
        expect(await at(0n)).toEqual(['a=2', 'b=2']);
      },
    },
    {
      name: 'answers versions, creation revisions and leases as they were',
      run: async (t) => {
        const lease = await t.grant();
        const created = await t.put('a', '1', lease);
        const updated = await t.put('a', '2');
        const deleted = await t.delete('a');
        const again = await t.put('a', '3');
        expect(await t.get('a', created)).toMatchObject({ createRevision: created, version: 1n, lease });
        expect(await t.get('a', updated)).toMatchObject({ createRevision: created, version: 2n, lease: 0n });
        expect(await t.get('a', deleted)).toBeUndefined();
        expect(await t.get('a', again)).toMatchObject({ createRevision: again, modRevision: again, version: 1n });
      },
    },
    {
      name: 'answers a negative revision with the current state',
      run: async (t) => {
        await t.put('a', '1');
        await t.put('a', '2');
        for (const revision of [-1n, -(2n ** 63n)]) {
          expect(t.pairs((await t.kv.range({ key: t.key('a'), revision })).kvs)).toEqual(['a=2']);
        }
      },
    },
    {
      name: 'refuses a revision of the future',
      run: async (t) => {
        const revision = await t.put('a');
        for (const future of [revision + 1n, 2n ** 63n - 1n]) {
          expect(await refusalOf(t.kv.range({ key: t.key('a'), revision: future }))).toEqual(refused.futureRevision);
        }
        const serializable = t.kv.range({ key: t.key('a'), revision: revision + 1n, serializable: true });
        expect(await refusalOf(serializable)).toEqual(refused.futureRevision);
      },
    },
    {
      name: 'counts and limits the past state',
      run: async (t) => {
        for (const name of ['a', 'b', 'c']) await t.put(name);
        const revision = await t.revision();
        await t.kv.deleteRange(t.all());
        expect(await t.kv.range({ ...t.all(), revision, countOnly: true })).toMatchObject({ kvs: [], count: 3n });
        const limited = await t.kv.range({ ...t.all(), revision, limit: 2n });
        expect(t.pairs(limited.kvs)).toEqual(['a=', 'b=']);
        expect(limited).toMatchObject({ more: true, count: 3n });
      },
    },
    {
      name: "shows the state at the end of a transaction's revision",
      run: async (t) => {
        const revision = await t.put('a', '1');
        const put = (value: string) =>
          ({ request: { case: 'requestPut', value: { key: t.key(value), value: t.key('v') } } }) as const;
        await t.kv.txn({ success: [put('x'), put('y')] });
        expect((await t.kv.range({ ...t.all(), revision, countOnly: true })).count).toBe(1n);
        expect((await t.kv.range({ ...t.all(), revision: revision + 1n, countOnly: true })).count).toBe(3n);
      },
    },
  ],
};
