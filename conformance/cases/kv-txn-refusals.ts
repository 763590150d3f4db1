import { expect } from 'vitest';
import { refusalOf, type CallStatus } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import { revisionOf, type CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';
import { op, target, type Op } from './txn-parts.ts';

const maxTxnOps = 128;
const unknownLease = 0x7fffffffn;
const put = (t: CaseContext, name: string): Op => op.put({ key: t.key(name), value: bytes('v') });
const remove = (t: CaseContext, name: string, end?: string): Op =>
  op.delete({ key: t.key(name), ...(end === undefined ? {} : { rangeEnd: t.key(end) }) });

async function expectRefused(t: CaseContext, success: Op[], refusal: CallStatus): Promise<void> {
  const before = await t.revision();
  expect(await refusalOf(t.kv.txn({ success }))).toEqual(refusal);
  // The branch that is not taken is checked like the one that is.
  expect(await refusalOf(t.kv.txn({ failure: success }))).toEqual(refusal);
  expect(await t.revision()).toBe(before);
}

const duplicates: Case[] = [
  {
    name: 'refuses two puts of one key',
    run: (t) => expectRefused(t, [put(t, 'a'), put(t, 'b'), put(t, 'a')], refused.duplicateKey),
  },
  {
    name: 'refuses a put of a key that a delete covers, in either order',
    run: async (t) => {
      await expectRefused(t, [remove(t, 'a'), put(t, 'a')], refused.duplicateKey);
      await expectRefused(t, [put(t, 'a'), remove(t, 'a')], refused.duplicateKey);
      await expectRefused(t, [put(t, 'b'), remove(t, 'a', 'c')], refused.duplicateKey);
      await expectRefused(t, [remove(t, 'a', 'c'), put(t, 'b')], refused.duplicateKey);
    },
  },
  {
    // etcd compares a put with the literal keys of the delete, and no key is between "b" and "\0".
    name: 'accepts puts beside a delete without an end: the later operation takes effect',
    run: async (t) => {
      const toTheEnd = op.delete({ key: t.key('b'), rangeEnd: bytes('\0') });
      for (const name of ['b', 'c']) await t.put(name, 'old');
      const base = await t.revision();
      const watch = t.watchStream();
      const { watchId } = await watch.create(t.all());
      await t.kv.txn({ success: [toTheEnd, put(t, 'b')] });
      expect(await t.get('b')).toMatchObject({ createRevision: base + 1n, version: 1n });
      await t.kv.txn({ success: [put(t, 'b'), put(t, 'c'), toTheEnd, put(t, 'd')] });
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['d=v']);
      expect(t.pairs((await t.kv.range({ ...t.all(), revision: base + 1n })).kvs)).toEqual(['b=v']);
      const events = t.events(await watch.events(watchId, 8), base);
      expect(events.slice(0, 3)).toEqual(['DELETE b +1', 'DELETE c +1', 'PUT b=v +1']);
      expect(events.slice(3)).toEqual(['PUT b=v +2', 'PUT c=v +2', 'DELETE b +2', 'DELETE c +2', 'PUT d=v +2']);
    },
  },
  {
    name: "accepts a put beside the ends of a delete's range",
    run: async (t) => {
      for (const name of ['a', 'b', 'c']) await t.put(name, 'old');
      await t.kv.txn({ success: [put(t, 'c'), remove(t, 'a', 'c'), put(t, 'Z')] });
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['Z=v', 'c=v']);
    },
  },
  {
    name: 'accepts overlapping deletes',
    run: async (t) => {
      for (const name of ['a', 'b', 'c']) await t.put(name);
      const { responses } = await t.kv.txn({ success: [remove(t, 'a', 'c'), remove(t, 'b'), remove(t, 'a', 'd')] });
      const deleted = responses.map(
        ({ response }) => response.case === 'responseDeleteRange' && response.value.deleted,
      );
      expect(deleted).toEqual([2n, 0n, 1n]);
    },
  },
  {
    name: 'accepts one key in both branches',
    run: async (t) => {
      const { succeeded } = await t.kv.txn({ success: [put(t, 'a')], failure: [put(t, 'a')] });
      expect(succeeded).toBe(true);
      await t.kv.txn({ success: [op.txn({ success: [put(t, 'b')], failure: [put(t, 'b')] })] });
      await t.kv.txn({ success: [op.txn({ success: [put(t, 'c')], failure: [remove(t, 'c')] })] });
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['a=v', 'b=v', 'c=v']);
    },
  },
  {
    name: 'refuses one key in a transaction and in one nested in it, on either branch',
    run: async (t) => {
      await expectRefused(t, [put(t, 'a'), op.txn({ success: [put(t, 'a')] })], refused.duplicateKey);
      await expectRefused(t, [op.txn({ failure: [put(t, 'a')] }), put(t, 'a')], refused.duplicateKey);
      await expectRefused(t, [remove(t, 'a', 'c'), op.txn({ failure: [put(t, 'b')] })], refused.duplicateKey);
      await expectRefused(t, [put(t, 'b'), op.txn({ success: [remove(t, 'a', 'c')] })], refused.duplicateKey);
    },
  },
  {
    name: 'refuses one key in two transactions nested side by side',
    run: async (t) => {
      const nested = op.txn({ success: [put(t, 'a')] });
      await expectRefused(t, [nested, nested], refused.duplicateKey);
      await expectRefused(t, [nested, op.txn({ failure: [put(t, 'a')] })], refused.duplicateKey);
      await expectRefused(t, [op.txn({ success: [remove(t, 'a')] }), nested], refused.duplicateKey);
      await expectRefused(t, [op.txn({ success: [nested] }), nested], refused.duplicateKey);
    },
  },
  {
    name: 'accepts a nested delete after a nested put of the key',
    run: async (t) => {
      const success = [op.txn({ success: [put(t, 'a')] }), op.txn({ success: [remove(t, 'a')] })];
      const before = await t.revision();
      expect(revisionOf(await t.kv.txn({ success }))).toBe(before + 1n);
      expect(await t.get('a')).toBeUndefined();
    },
  },
];

const limits: Case[] = [
  {
    name: 'accepts 128 compares and 128 operations in each branch, and no more',
    run: async (t) => {
      const many = (length: number, each: (index: number) => Op): Op[] => Array.from({ length }, (_, i) => each(i));
      const range = op.range({ key: t.key('a') });
      const compare = Array.from({ length: maxTxnOps }, () => ({ key: t.key('a'), ...target.version(0n) }));
      const full = { compare, success: many(maxTxnOps, (i) => put(t, `k${i}`)), failure: many(maxTxnOps, () => range) };
      expect((await t.kv.txn(full)).responses).toHaveLength(maxTxnOps);
      const tooMany = [
        { ...full, compare: [...compare, { key: t.key('a'), ...target.version(0n) }] },
        { ...full, success: [...full.success, range] },
        { ...full, failure: [...full.failure, range] },
      ];
      for (const txn of tooMany) expect(await refusalOf(t.kv.txn(txn))).toEqual(refused.tooManyOps);
    },
  },
  {
    name: "gives a nested transaction the ops left by its parent's largest part",
    run: async (t) => {
      const ranges = (length: number): Op[] => Array.from({ length }, () => op.range({ key: t.key('a') }));
      const nested = (length: number): Op => op.txn({ success: ranges(length) });
      // The nested transaction itself is one operation.
      await t.kv.txn({ success: [nested(maxTxnOps - 1)] });
      await expectRefused(t, [nested(maxTxnOps)], refused.tooManyOps);
      await t.kv.txn({ success: [...ranges(99), nested(28)] });
      await expectRefused(t, [...ranges(99), nested(29)], refused.tooManyOps);
      await t.kv.txn({ success: [nested(100), nested(100)] });
      await t.kv.txn({ success: [op.txn({ success: [nested(maxTxnOps - 2)] })] });
      await expectRefused(t, [op.txn({ success: [nested(maxTxnOps - 1)] })], refused.tooManyOps);
    },
  },
  {
    name: 'counts the compares of the parent against a nested transaction',
    run: async (t) => {
      const compare = Array.from({ length: 100 }, () => ({ key: t.key('a'), ...target.version(0n) }));
      const nested = (length: number): Op => op.txn({ compare: compare.slice(0, length) });
      await t.kv.txn({ compare, success: [nested(28)] });
      expect(await refusalOf(t.kv.txn({ compare, success: [nested(29)] }))).toEqual(refused.tooManyOps);
    },
  },
];

const invalidParts: Case[] = [
  {
    name: 'refuses an operation without a request',
    run: (t) => expectRefused(t, [{}], refused.keyNotFound),
  },
  {
    name: 'refuses operations with an empty key',
    run: async (t) => {
      for (const each of [op.range({}), op.put({}), op.delete({}), op.txn({ success: [op.put({})] })]) {
        await expectRefused(t, [put(t, 'a'), each], refused.emptyKey);
      }
    },
  },
  {
    name: 'refuses a put that contradicts itself',
    run: async (t) => {
      const value = bytes('v');
      await expectRefused(t, [op.put({ key: t.key('a'), value, ignoreValue: true })], refused.valueProvided);
      await expectRefused(t, [op.put({ key: t.key('a'), lease: 1n, ignoreLease: true })], refused.leaseProvided);
    },
  },
  {
    name: 'refuses the whole transaction for a put of a missing key with ignore_value',
    run: async (t) => {
      const before = await t.revision();
      for (const keep of [{ ignoreValue: true }, { ignoreLease: true }]) {
        const success = [put(t, 'a'), op.put({ key: t.key('missing'), ...keep })];
        expect(await refusalOf(t.kv.txn({ success }))).toEqual(refused.keyNotFound);
      }
      expect(await t.revision()).toBe(before);
      expect(await t.get('a')).toBeUndefined();
    },
  },
  {
    name: 'refuses the whole transaction for a put with a lease that does not exist',
    run: async (t) => {
      const before = await t.revision();
      const success = [put(t, 'a'), op.put({ key: t.key('b'), lease: unknownLease })];
      expect(await refusalOf(t.kv.txn({ success }))).toEqual(refused.leaseNotFound);
      expect(await refusalOf(t.kv.txn({ success: [op.txn({ success })] }))).toEqual(refused.leaseNotFound);
      expect(await t.revision()).toBe(before);
      expect(await t.get('a')).toBeUndefined();
    },
  },
  {
    name: 'does not look for the lease or the key of a branch that is not taken',
    run: async (t) => {
      const failure = [
        op.put({ key: t.key('b'), lease: unknownLease }),
        op.put({ key: t.key('missing'), ignoreValue: true }),
        op.range({ key: t.key('a'), revision: 2n ** 62n }),
      ];
      expect((await t.kv.txn({ success: [put(t, 'a')], failure })).succeeded).toBe(true);
    },
  },
  {
    name: 'refuses the whole transaction for a range at a revision of the future',
    run: async (t) => {
      const before = await t.revision();
      const success = [put(t, 'a'), op.range({ key: t.key('a'), revision: before + 1n })];
      expect(await refusalOf(t.kv.txn({ success }))).toEqual(refused.futureRevision);
      expect(await t.get('a')).toBeUndefined();
      expect(await t.revision()).toBe(before);
    },
  },
  {
    name: 'reports the first fault',
    since: '3.6',
    run: async (t) => {
      const future = op.range({ key: t.key('a'), revision: 2n ** 62n });
      const leased = op.put({ key: t.key('a'), lease: unknownLease });
      expect(await refusalOf(t.kv.txn({ success: [future, leased] }))).toEqual(refused.futureRevision);
      expect(await refusalOf(t.kv.txn({ success: [leased, future] }))).toEqual(refused.leaseNotFound);
    },
  },
  {
    name: 'refuses a put that keeps the value of a key which the transaction itself deletes',
    tenureOnly: 'etcd accepts it and then stops with a panic',
    run: async (t) => {
      const before = await t.put('b', 'old');
      const toTheEnd = op.delete({ key: t.key('a'), rangeEnd: bytes('\0') });
      for (const keep of [{ ignoreValue: true }, { ignoreLease: true }]) {
        const success = [toTheEnd, op.put({ key: t.key('b'), ...keep })];
        expect(await refusalOf(t.kv.txn({ success }))).toEqual(refused.keyNotFound);
      }
      expect(await t.revision()).toBe(before);
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['b=old']);
    },
  },
  {
    name: 'finds a put that ignores the value of a key that the transaction itself makes missing',
    run: async (t) => {
      // The check runs on the state before the transaction, and no put may follow a put or delete of its key.
      const success = [put(t, 'a'), op.put({ key: t.key('a'), ignoreValue: true })];
      expect(await refusalOf(t.kv.txn({ success }))).toEqual(refused.duplicateKey);
    },
  },
];

export const kvTxnRefusals: CaseGroup = {
  name: 'KV.Txn, refusals',
  cases: [...duplicates, ...limits, ...invalidParts],
};
