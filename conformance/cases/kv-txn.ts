import { expect } from 'vitest';
import type { etcdserverpb } from '@tenure/protocol';
import { bytes } from './bytes.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { op, target, type Op } from './txn-parts.ts';

/** 'range a=1 b=2 (2)', 'put', 'delete 1', 'txn yes [...]' for each response of a transaction. */
function outline(t: CaseContext, { responses }: etcdserverpb.TxnResponse): string[] {
  return responses.map(({ response }) => {
    switch (response.case) {
      case 'responseRange':
        return `range ${t.pairs(response.value.kvs).join(' ')} (${response.value.count})`;
      case 'responsePut':
        return ['put', ...t.pairs(response.value.prevKv === undefined ? [] : [response.value.prevKv])].join(' ');
      case 'responseDeleteRange':
        return [`delete ${response.value.deleted}`, ...t.pairs(response.value.prevKvs)].join(' ');
      case 'responseTxn':
        return `txn ${response.value.succeeded ? 'yes' : 'no'} [${outline(t, response.value).join(', ')}]`;
      default:
        return 'nothing';
    }
  });
}

const put = (t: CaseContext, name: string, value = ''): Op => op.put({ key: t.key(name), value: bytes(value) });
const never = { key: bytes('no such key'), ...target.version(1n) };

const branches: Case[] = [
  {
    name: 'runs the first branch when the compares hold and the second when they do not',
    run: async (t) => {
      const branch = { success: [put(t, 'yes')], failure: [put(t, 'no')] };
      expect((await t.kv.txn({ compare: [], ...branch })).succeeded).toBe(true);
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['yes=']);
      expect((await t.kv.txn({ compare: [never], ...branch })).succeeded).toBe(false);
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['no=', 'yes=']);
    },
  },
  {
    name: 'answers each operation in order, and each sees the writes before it',
    run: async (t) => {
      await t.put('a', '0');
      const one = { key: t.key('a') };
      const reply = await t.kv.txn({
        success: [
          op.range(one),
          op.put({ ...one, value: bytes('1'), prevKv: true }),
          op.range(one),
          put(t, 'b', '1'),
          op.range(t.all()),
          op.delete({ key: t.key('c'), rangeEnd: t.key('d'), prevKv: true }),
        ],
      });
      expect(outline(t, reply)).toEqual([
        'range a=0 (1)',
        'put a=0',
        'range a=1 (1)',
        'put',
        'range a=1 b=1 (2)',
        'delete 0',
      ]);
    },
  },
  {
    name: 'does nothing in an empty transaction',
    run: async (t) => {
      const before = await t.put('a');
      const reply = await t.kv.txn({});
      expect(reply).toMatchObject({ succeeded: true, responses: [] });
      expect(reply.header?.revision).toBe(before);
      const failed = await t.kv.txn({ compare: [never], success: [put(t, 'a')] });
      expect(failed).toMatchObject({ succeeded: false, responses: [] });
      expect(await t.revision()).toBe(before);
    },
  },
];

const revisions: Case[] = [
  {
    name: 'makes all its writes at one revision',
    run: async (t) => {
      const before = await t.put('gone');
      const reply = await t.kv.txn({ success: [put(t, 'a'), put(t, 'b'), op.delete({ key: t.key('gone') })] });
      expect(reply.header?.revision).toBe(before + 1n);
      for (const name of ['a', 'b']) expect(await t.get(name)).toMatchObject({ modRevision: before + 1n });
      expect(await t.get('gone')).toBeUndefined();
      expect(await t.revision()).toBe(before + 1n);
    },
  },
  {
    name: 'creates no revision when it writes nothing',
    run: async (t) => {
      const before = await t.put('a');
      const reply = await t.kv.txn({ success: [op.range(t.all()), op.delete({ key: t.key('missing') })] });
      expect(reply.header?.revision).toBe(before);
      expect(await t.revision()).toBe(before);
    },
  },
  {
    name: 'puts a revision into the header of each response',
    run: async (t) => {
      const before = await t.put('gone');
      const reply = await t.kv.txn({
        success: [
          op.range(t.all()),
          put(t, 'a'),
          op.range(t.all()),
          op.delete({ key: t.key('gone') }),
          op.range(t.all()),
        ],
      });
      const headers = reply.responses.map(({ response }) => {
        if (response.case === undefined) throw new Error('a response is missing');
        return (response.value.header?.revision ?? -1n) - before;
      });
      expect(headers).toEqual([0n, 1n, 1n, 1n, 1n]);
    },
  },
  {
    name: 'shows its own writes at its own revision',
    run: async (t) => {
      const before = await t.put('a', '0');
      const { responses } = await t.kv.txn({ success: [put(t, 'a', '1'), op.range({ key: t.key('a') })] });
      const range = responses[1]?.response;
      const kv = range?.case === 'responseRange' ? range.value.kvs[0] : undefined;
      expect(kv).toMatchObject({ createRevision: before, modRevision: before + 1n, version: 2n });
    },
  },
  {
    name: 'reads a past revision in the middle of its writes',
    run: async (t) => {
      const before = await t.put('a', '0');
      const past = op.range({ key: t.key('a'), revision: before });
      const reply = await t.kv.txn({ success: [put(t, 'a', '1'), past] });
      expect(outline(t, reply)).toEqual(['put', 'range a=0 (1)']);
    },
  },
  {
    name: 'deletes in the order of the operations, one event each, at one revision',
    run: async (t) => {
      const base = await t.put('b', '1');
      const watch = t.watchStream();
      const { watchId } = await watch.create({ ...t.all() });
      await t.kv.txn({
        success: [put(t, 'z', '1'), op.delete({ key: t.key('b') }), put(t, 'a', '1'), op.delete({ key: t.key('x') })],
      });
      const replies = await watch.replies(watchId, 3);
      expect(replies).toHaveLength(1);
      expect(t.events(replies[0]?.events ?? [], base)).toEqual(['PUT z=1 +1', 'DELETE b +1', 'PUT a=1 +1']);
    },
  },
];

const nesting: Case[] = [
  {
    name: 'runs nested transactions, each with compares of its own',
    run: async (t) => {
      await t.put('a', '1');
      const isOne = { key: t.key('a'), ...target.value(bytes('1')) };
      const reply = await t.kv.txn({
        compare: [isOne],
        success: [
          op.txn({ compare: [isOne], success: [put(t, 'b', 'yes')], failure: [put(t, 'b', 'no')] }),
          op.txn({ compare: [never], success: [], failure: [put(t, 'c', 'no'), op.range({ key: t.key('b') })] }),
        ],
      });
      expect(outline(t, reply)).toEqual(['txn yes [put]', 'txn no [put, range b=yes (1)]']);
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['a=1', 'b=yes', 'c=no']);
    },
  },
  {
    name: 'decides all compares, nested ones too, on the state before the transaction',
    run: async (t) => {
      await t.put('a', 'old');
      const isOld = { key: t.key('a'), ...target.value(bytes('old')) };
      const reply = await t.kv.txn({
        success: [put(t, 'a', 'new'), op.txn({ compare: [isOld], success: [], failure: [put(t, 'b')] })],
      });
      expect(outline(t, reply)).toEqual(['put', 'txn yes []']);
    },
  },
  {
    name: 'nests several levels deep, at one revision',
    run: async (t) => {
      const before = await t.revision();
      let inner: Op = put(t, 'level0');
      for (let level = 1; level <= 10; level += 1) inner = op.txn({ success: [put(t, `level${level}`), inner] });
      const reply = await t.kv.txn({ success: [inner] });
      expect(reply.header?.revision).toBe(before + 1n);
      const { kvs } = await t.kv.range(t.all());
      expect(kvs).toHaveLength(11);
      expect(new Set(kvs.map(({ modRevision }) => modRevision))).toEqual(new Set([before + 1n]));
    },
  },
];

export const kvTxn: CaseGroup = { name: 'KV.Txn', cases: [...branches, ...revisions, ...nesting] };
