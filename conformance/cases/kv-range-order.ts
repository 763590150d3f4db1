import { expect } from 'vitest';
import { etcdserverpb } from '@tenure/protocol';
import { refusalOf } from '../client/refusal.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

const { RangeRequest_SortOrder: Order, RangeRequest_SortTarget: Target } = etcdserverpb;

/** Four keys in a different order for each sort target. Returns the revision before the first. */
async function seed(t: CaseContext): Promise<bigint> {
  const before = await t.revision();
  for (const [name, value] of [
    ['c', '2'],
    ['a', '3'],
    ['d', '-'],
    ['b', '-'],
  ] as const)
    await t.put(name, value);
  for (const [name, value] of [
    ['c', '-'],
    ['c', '-'],
    ['c', '2'],
    ['d', '1'],
    ['b', '-'],
    ['b', '4'],
  ] as const) {
    await t.put(name, value);
  }
  return before;
}

const ascending: readonly (readonly [keyof typeof Target, string])[] = [
  ['KEY', 'abcd'],
  ['VERSION', 'adbc'],
  ['CREATE', 'cadb'],
  ['MOD', 'acdb'],
  ['VALUE', 'dcab'],
];

const reversed = (names: string): string => [...names].toReversed().join('');
const namesOf = (t: CaseContext, reply: etcdserverpb.RangeResponse): string =>
  reply.kvs.map(({ key }) => t.nameOf(key)).join('');

const sorts: Case[] = ascending.flatMap(([target, names]) => [
  {
    name: `sorts by ${target}, ascending`,
    run: async (t: CaseContext) => {
      await seed(t);
      const reply = await t.kv.range({ ...t.all(), sortOrder: Order.ASCEND, sortTarget: Target[target] });
      expect(namesOf(t, reply)).toBe(names);
    },
  },
  {
    name: `sorts by ${target}, descending`,
    run: async (t: CaseContext) => {
      await seed(t);
      const reply = await t.kv.range({ ...t.all(), sortOrder: Order.DESCEND, sortTarget: Target[target] });
      expect(namesOf(t, reply)).toBe(reversed(names));
    },
  },
  {
    name: `sorts by ${target} without an order as ascending`,
    run: async (t: CaseContext) => {
      await seed(t);
      const reply = await t.kv.range({ ...t.all(), sortOrder: Order.NONE, sortTarget: Target[target] });
      expect(namesOf(t, reply)).toBe(names);
    },
  },
  {
    name: `applies the limit after sorting by ${target}`,
    run: async (t: CaseContext) => {
      await seed(t);
      const sorted = { ...t.all(), sortTarget: Target[target], limit: 3n };
      const up = await t.kv.range({ ...sorted, sortOrder: Order.ASCEND });
      expect(namesOf(t, up)).toBe(names.slice(0, 3));
      expect(up).toMatchObject({ more: true, count: 4n });
      const down = await t.kv.range({ ...sorted, sortOrder: Order.DESCEND });
      expect(namesOf(t, down)).toBe(reversed(names).slice(0, 3));
      const all = await t.kv.range({ ...sorted, sortOrder: Order.DESCEND, limit: 4n });
      expect(all).toMatchObject({ more: false, count: 4n });
    },
  },
]);

const otherSorts: Case[] = [
  {
    name: 'sorts by value as bytes',
    run: async (t) => {
      for (const [name, value] of [
        ['a', '\x80'],
        ['b', ''],
        ['c', '\x7f'],
        ['d', '\x7f\0'],
        ['e', '\xff'],
      ] as const) {
        await t.put(name, value);
      }
      const reply = await t.kv.range({ ...t.all(), sortOrder: Order.ASCEND, sortTarget: Target.VALUE });
      expect(namesOf(t, reply)).toBe('bcdae');
    },
  },
  {
    name: 'sorts by a value that keys_only leaves out',
    run: async (t) => {
      await seed(t);
      const reply = await t.kv.range({ ...t.all(), sortOrder: Order.ASCEND, sortTarget: Target.VALUE, keysOnly: true });
      expect(t.pairs(reply.kvs)).toEqual(['d=', 'c=', 'a=', 'b=']);
    },
  },
  {
    name: 'sorts the state at a past revision',
    run: async (t) => {
      const before = await seed(t);
      const sorted = { ...t.all(), sortOrder: Order.DESCEND, sortTarget: Target.VERSION, limit: 1n };
      const reply = await t.kv.range({ ...sorted, revision: before + 5n });
      expect(t.pairs(reply.kvs)).toEqual(['c=-']);
      expect(reply.kvs[0]?.version).toBe(2n);
    },
  },
  {
    name: 'refuses a sort order or target that does not exist',
    since: '3.5',
    run: async (t) => {
      for (const unknown of [-1, 5, 1000]) {
        const byOrder = t.kv.range({ key: t.key('a'), sortOrder: unknown as etcdserverpb.RangeRequest_SortOrder });
        expect(await refusalOf(byOrder), `order ${unknown}`).toEqual(refused.invalidSort);
        const byTarget = t.kv.range({ key: t.key('a'), sortTarget: unknown as etcdserverpb.RangeRequest_SortTarget });
        expect(await refusalOf(byTarget), `target ${unknown}`).toEqual(refused.invalidSort);
      }
    },
  },
];

const filters: Case[] = [
  {
    name: 'filters by modification and creation revision, both ends included',
    run: async (t) => {
      const base = await seed(t);
      const filtered = async (filter: Partial<Record<string, bigint>>): Promise<string> =>
        namesOf(t, await t.kv.range({ ...t.all(), ...filter }));
      // Modified at +2 (a), +7 (c), +8 (d), +10 (b); created at +1 (c), +2 (a), +3 (d), +4 (b).
      expect(await filtered({ minModRevision: base + 7n })).toBe('bcd');
      expect(await filtered({ minModRevision: base + 8n })).toBe('bd');
      expect(await filtered({ maxModRevision: base + 7n })).toBe('ac');
      expect(await filtered({ maxModRevision: base + 1n })).toBe('');
      expect(await filtered({ minModRevision: base + 3n, maxModRevision: base + 9n })).toBe('cd');
      expect(await filtered({ minCreateRevision: base + 2n })).toBe('abd');
      expect(await filtered({ maxCreateRevision: base + 2n })).toBe('ac');
      expect(await filtered({ minCreateRevision: base + 2n, maxCreateRevision: base + 3n })).toBe('ad');
      expect(await filtered({ minCreateRevision: base + 2n, maxModRevision: base + 8n })).toBe('ad');
      expect(await filtered({ minModRevision: base + 9n, maxModRevision: base + 3n })).toBe('');
    },
  },
  {
    name: 'counts all keys of the range, not those that pass the filter',
    run: async (t) => {
      const base = await seed(t);
      const reply = await t.kv.range({ ...t.all(), minModRevision: base + 8n });
      expect(reply).toMatchObject({ count: 4n, more: false });
      const none = await t.kv.range({ ...t.all(), minModRevision: base + 100n });
      expect(none).toMatchObject({ kvs: [], count: 4n, more: false });
    },
  },
  {
    name: 'applies the limit after the filter',
    run: async (t) => {
      const base = await seed(t);
      const filtered = { ...t.all(), minModRevision: base + 7n };
      const some = await t.kv.range({ ...filtered, limit: 2n });
      expect(namesOf(t, some)).toBe('bc');
      expect(some.more).toBe(true);
      const all = await t.kv.range({ ...filtered, limit: 3n });
      expect(namesOf(t, all)).toBe('bcd');
      expect(all.more).toBe(false);
    },
  },
  {
    name: 'filters, then sorts, then limits',
    run: async (t) => {
      const base = await seed(t);
      const reply = await t.kv.range({
        ...t.all(),
        minModRevision: base + 3n,
        sortOrder: Order.DESCEND,
        sortTarget: Target.CREATE,
        limit: 2n,
      });
      expect(namesOf(t, reply)).toBe('bd');
      expect(reply).toMatchObject({ more: true, count: 4n });
    },
  },
];

export const kvRangeOrder: CaseGroup = {
  name: 'KV.Range, order and filters',
  cases: [...sorts, ...otherSorts, ...filters],
};
