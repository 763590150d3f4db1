import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import { bytes, textOf } from './bytes.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

async function seed(t: CaseContext): Promise<void> {
  for (const name of ['a', 'b', 'c', 'd']) await t.put(name, name.toUpperCase());
}

const singleKey: Case[] = [
  {
    name: 'answers one key with all its fields',
    run: async (t) => {
      const lease = await t.grant();
      const created = await t.put('a', 'old');
      const modified = await t.put('a', 'new', lease);
      const reply = await t.kv.range({ key: t.key('a') });
      expect(reply).toMatchObject({ count: 1n, more: false });
      expect(reply.header?.revision).toBe(modified);
      expect(reply.kvs).toHaveLength(1);
      expect(reply.kvs[0]).toMatchObject({ createRevision: created, modRevision: modified, version: 2n, lease });
      expect(t.pairs(reply.kvs)).toEqual(['a=new']);
    },
  },
  {
    name: 'answers a missing key with nothing and the current revision',
    run: async (t) => {
      const revision = await t.put('a');
      const reply = await t.kv.range({ key: t.key('missing') });
      expect(reply).toMatchObject({ kvs: [], count: 0n, more: false });
      expect(reply.header?.revision).toBe(revision);
    },
  },
  {
    name: 'names the cluster, the member and the term in each header',
    run: async (t) => {
      const { header } = await t.kv.range({ key: t.key('a') });
      expect(header?.clusterId).not.toBe(0n);
      expect(header?.memberId).not.toBe(0n);
      expect(header?.raftTerm).toBeGreaterThan(0n);
      const put = await t.kv.put({ key: t.key('a') });
      expect(put.header?.clusterId).toBe(header?.clusterId);
      expect(put.header?.memberId).toBe(header?.memberId);
    },
  },
  {
    name: 'serves a serializable read of an earlier write',
    run: async (t) => {
      await t.put('a', '1');
      const reply = await t.kv.range({ key: t.key('a'), serializable: true });
      expect(t.pairs(reply.kvs)).toEqual(['a=1']);
    },
  },
  {
    name: 'keeps every byte of keys and values',
    run: async (t) => {
      const all = bytes(Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).join(''));
      const key = bytes(textOf(t.key('')) + textOf(all));
      await t.kv.put({ key, value: all });
      const { kvs } = await t.kv.range({ key });
      expect(Buffer.from(kvs[0]?.key ?? [])).toEqual(Buffer.from(key));
      expect(Buffer.from(kvs[0]?.value ?? [])).toEqual(Buffer.from(all));
    },
  },
  {
    name: 'refuses an empty key',
    run: async (t) => {
      expect(await refusalOf(t.kv.range({ key: bytes('') }))).toEqual(refused.emptyKey);
      expect(await refusalOf(t.kv.range({ key: bytes(''), rangeEnd: bytes('\0') }))).toEqual(refused.emptyKey);
    },
  },
];

const rangeForms: Case[] = [
  {
    name: 'reads a range with its start and without its end',
    run: async (t) => {
      await seed(t);
      const reply = await t.kv.range({ key: t.key('b'), rangeEnd: t.key('d') });
      expect(t.pairs(reply.kvs)).toEqual(['b=B', 'c=C']);
      expect(reply.count).toBe(2n);
    },
  },
  {
    name: 'accepts a range whose ends are not keys',
    run: async (t) => {
      await seed(t);
      const reply = await t.kv.range({ key: t.key('aa'), rangeEnd: t.key('cc') });
      expect(t.pairs(reply.kvs)).toEqual(['b=B', 'c=C']);
    },
  },
  {
    name: 'finds nothing in a range that ends where it begins, or before',
    run: async (t) => {
      await seed(t);
      for (const end of ['b', 'a']) {
        const reply = await t.kv.range({ key: t.key('b'), rangeEnd: t.key(end) });
        expect(reply).toMatchObject({ kvs: [], count: 0n, more: false });
      }
    },
  },
  {
    name: 'treats a range end of one zero byte as no end',
    run: async (t) => {
      await seed(t);
      const reply = await t.kv.range({ key: t.key('c'), rangeEnd: bytes('\0'), limit: 2n });
      expect(t.pairs(reply.kvs)).toEqual(['c=C', 'd=D']);
    },
  },
  {
    name: 'treats a key and an end of one zero byte each as the whole key space',
    run: async (t) => {
      await seed(t);
      const whole = { key: bytes('\0'), rangeEnd: bytes('\0') };
      const { count, kvs } = await t.kv.range(whole);
      expect(BigInt(kvs.length)).toBe(count);
      const mine = kvs.filter(({ key }) => textOf(key).startsWith(textOf(t.key(''))));
      expect(t.pairs(mine)).toEqual(['a=A', 'b=B', 'c=C', 'd=D']);
      expect((await t.kv.range({ ...whole, countOnly: true })).count).toBe(count);
    },
  },
  {
    name: 'orders keys by their unsigned bytes, shorter first',
    run: async (t) => {
      const names = ['\xff\xff', 'b', '\x80', '', 'ab', '\x7f', 'a', '\xff', 'a\0', '\0', 'aa', 'B'];
      for (const name of names) await t.put(name);
      const { kvs } = await t.kv.range({ ...t.all() });
      expect(kvs.map(({ key }) => t.nameOf(key))).toEqual([
        '',
        '\0',
        'B',
        'a',
        'a\0',
        'aa',
        'ab',
        'b',
        '\x7f',
        '\x80',
        '\xff',
        '\xff\xff',
      ]);
    },
  },
  {
    name: 'finds the keys with a prefix that ends in 0xff',
    run: async (t) => {
      for (const name of ['p', 'p\xff', 'p\xff1', 'p\xff\xff', 'q']) await t.put(name);
      const { kvs } = await t.kv.range(t.all('p\xff'));
      expect(kvs.map(({ key }) => t.nameOf(key))).toEqual(['p\xff', 'p\xff1', 'p\xff\xff']);
    },
  },
];

const reductions: Case[] = [
  {
    name: 'leaves out only the values with keys_only',
    run: async (t) => {
      await seed(t);
      const lease = await t.grant();
      const revision = await t.put('b', 'BB', lease);
      const { kvs, count } = await t.kv.range({ ...t.all(), keysOnly: true });
      expect(t.pairs(kvs)).toEqual(['a=', 'b=', 'c=', 'd=']);
      expect(kvs[1]).toMatchObject({ modRevision: revision, version: 2n, lease });
      expect(count).toBe(4n);
    },
  },
  {
    name: 'returns only the number with count_only, for any limit',
    run: async (t) => {
      await seed(t);
      for (const limit of [0n, 2n, 9n]) {
        const reply = await t.kv.range({ ...t.all(), countOnly: true, limit });
        expect(reply).toMatchObject({ kvs: [], count: 4n, more: false });
      }
    },
  },
  {
    name: 'counts one key with count_only and keys_only together',
    run: async (t) => {
      await seed(t);
      const reply = await t.kv.range({ key: t.key('a'), countOnly: true, keysOnly: true });
      expect(reply).toMatchObject({ kvs: [], count: 1n });
    },
  },
  {
    name: 'stops at the limit and reports more, with the total count',
    run: async (t) => {
      await seed(t);
      const expected: [bigint, number, boolean][] = [
        [1n, 1, true],
        [3n, 3, true],
        [4n, 4, false],
        [5n, 4, false],
      ];
      for (const [limit, length, more] of expected) {
        const reply = await t.kv.range({ ...t.all(), limit });
        expect(reply.kvs, `limit ${limit}`).toHaveLength(length);
        expect(reply, `limit ${limit}`).toMatchObject({ more, count: 4n });
      }
    },
  },
  {
    name: 'treats a limit of zero or less as none',
    run: async (t) => {
      await seed(t);
      for (const limit of [0n, -1n, -(2n ** 63n)]) {
        const reply = await t.kv.range({ ...t.all(), limit });
        expect(reply.kvs).toHaveLength(4);
        expect(reply.more).toBe(false);
      }
    },
  },
  {
    name: 'accepts the largest limit',
    run: async (t) => {
      await seed(t);
      const reply = await t.kv.range({ ...t.all(), limit: 2n ** 63n - 1n });
      expect(reply.kvs).toHaveLength(4);
      expect(reply.more).toBe(false);
    },
  },
];

export const kvRange: CaseGroup = { name: 'KV.Range', cases: [...singleKey, ...rangeForms, ...reductions] };
