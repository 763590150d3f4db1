import { expect } from 'vitest';
import { etcdserverpb } from '@tenure/protocol';
import { refusalOf } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';
import { target, type CompareInit } from './txn-parts.ts';

const { Compare_CompareResult: Result, Compare_CompareTarget: Target } = etcdserverpb;

async function holds(t: CaseContext, ...compare: CompareInit[]): Promise<boolean> {
  return (await t.kv.txn({ compare })).succeeded;
}

/** Which of EQUAL, GREATER, LESS and NOT_EQUAL hold, as letters. */
async function verdicts(t: CaseContext, compare: CompareInit): Promise<string> {
  const letters: string[] = [];
  for (const result of ['EQUAL', 'GREATER', 'LESS', 'NOT_EQUAL'] as const) {
    if (await holds(t, { ...compare, result: Result[result] })) letters.push(result[0] ?? '');
  }
  return letters.join('');
}

const whenEqual = 'E';
const whenKeyIsGreater = 'GN';
const whenKeyIsLess = 'LN';

const targets: Case[] = [
  {
    name: 'compares versions',
    run: async (t) => {
      for (const value of ['1', '2', '3']) await t.put('a', value);
      const key = t.key('a');
      expect(await verdicts(t, { key, ...target.version(3n) })).toBe(whenEqual);
      expect(await verdicts(t, { key, ...target.version(2n) })).toBe(whenKeyIsGreater);
      expect(await verdicts(t, { key, ...target.version(4n) })).toBe(whenKeyIsLess);
      expect(await verdicts(t, { key, ...target.version(-1n) })).toBe(whenKeyIsGreater);
    },
  },
  {
    name: 'compares creation and modification revisions',
    run: async (t) => {
      const created = await t.put('a');
      const modified = await t.put('a');
      const key = t.key('a');
      expect(await verdicts(t, { key, ...target.create(created) })).toBe(whenEqual);
      expect(await verdicts(t, { key, ...target.create(created - 1n) })).toBe(whenKeyIsGreater);
      expect(await verdicts(t, { key, ...target.create(modified) })).toBe(whenKeyIsLess);
      expect(await verdicts(t, { key, ...target.mod(modified) })).toBe(whenEqual);
      expect(await verdicts(t, { key, ...target.mod(created) })).toBe(whenKeyIsGreater);
      expect(await verdicts(t, { key, ...target.mod(modified + 1n) })).toBe(whenKeyIsLess);
    },
  },
  {
    name: 'compares values as unsigned bytes, shorter first',
    run: async (t) => {
      await t.put('a', 'm\x80');
      const key = t.key('a');
      expect(await verdicts(t, { key, ...target.value(bytes('m\x80')) })).toBe(whenEqual);
      for (const less of ['', 'm', 'm\x7f', 'm\x7f\xff', 'M\x80']) {
        expect(await verdicts(t, { key, ...target.value(bytes(less)) }), less).toBe(whenKeyIsGreater);
      }
      for (const greater of ['m\x80\0', 'm\x81', 'n']) {
        expect(await verdicts(t, { key, ...target.value(bytes(greater)) }), greater).toBe(whenKeyIsLess);
      }
    },
  },
  {
    name: 'compares leases',
    run: async (t) => {
      const lease = await t.grant();
      await t.put('a', '1', lease);
      await t.put('b', '1');
      expect(await verdicts(t, { key: t.key('a'), ...target.lease(lease) })).toBe(whenEqual);
      expect(await verdicts(t, { key: t.key('a'), ...target.lease(lease - 1n) })).toBe(whenKeyIsGreater);
      expect(await verdicts(t, { key: t.key('a'), ...target.lease(lease + 1n) })).toBe(whenKeyIsLess);
      expect(await verdicts(t, { key: t.key('b'), ...target.lease(0n) })).toBe(whenEqual);
    },
  },
  {
    name: 'treats a missing operand as zero, or as the empty value',
    run: async (t) => {
      const lease = await t.grant();
      await t.put('a', '1', lease);
      await t.put('empty', '');
      const key = t.key('a');
      for (const each of [Target.VERSION, Target.CREATE, Target.MOD, Target.LEASE]) {
        expect(await verdicts(t, { key, target: each })).toBe(whenKeyIsGreater);
      }
      expect(await verdicts(t, { key, target: Target.VALUE })).toBe(whenKeyIsGreater);
      expect(await verdicts(t, { key: t.key('empty'), target: Target.VALUE })).toBe(whenEqual);
    },
  },
  {
    name: 'treats an operand of another kind than the target as missing',
    run: async (t) => {
      await t.put('a', '1');
      const mismatched: CompareInit = {
        key: t.key('a'),
        target: Target.VERSION,
        targetUnion: { case: 'lease', value: 1n },
      };
      expect(await verdicts(t, mismatched)).toBe(whenKeyIsGreater);
    },
  },
];

const missingKeys: Case[] = [
  {
    name: 'compares a missing key as zero, but its value never',
    run: async (t) => {
      const key = t.key('missing');
      for (const kind of [target.version, target.create, target.mod, target.lease]) {
        expect(await verdicts(t, { key, ...kind(0n) })).toBe(whenEqual);
        expect(await verdicts(t, { key, ...kind(1n) })).toBe(whenKeyIsLess);
        expect(await verdicts(t, { key, ...kind(-1n) })).toBe(whenKeyIsGreater);
      }
      for (const value of ['', 'v']) expect(await verdicts(t, { key, ...target.value(bytes(value)) })).toBe('');
    },
  },
  {
    name: 'compares a deleted key as a missing one',
    run: async (t) => {
      await t.put('a', '1');
      await t.delete('a');
      const key = t.key('a');
      expect(await verdicts(t, { key, ...target.version(0n) })).toBe(whenEqual);
      expect(await verdicts(t, { key, ...target.mod(0n) })).toBe(whenEqual);
      expect(await verdicts(t, { key, ...target.value(bytes('1')) })).toBe('');
    },
  },
  {
    name: 'holds without any compare',
    run: async (t) => {
      expect(await holds(t)).toBe(true);
    },
  },
  {
    name: 'holds only when all compares hold',
    run: async (t) => {
      await t.put('a', '1');
      const yes = { key: t.key('a'), ...target.version(1n) };
      const no = { key: t.key('a'), ...target.version(2n) };
      expect(await holds(t, yes, yes)).toBe(true);
      expect(await holds(t, yes, no)).toBe(false);
      expect(await holds(t, no, yes)).toBe(false);
    },
  },
  {
    name: 'refuses a compare with an empty key',
    run: async (t) => {
      const txn = t.kv.txn({ compare: [{ key: bytes(''), ...target.version(0n) }] });
      expect(await refusalOf(txn)).toEqual(refused.emptyKey);
    },
  },
];

const ranges: Case[] = [
  {
    name: 'compares every key of a range',
    run: async (t) => {
      for (const name of ['a', 'b', 'c']) await t.put(name, 'same');
      await t.put('b', 'same');
      const range = t.all();
      expect(await holds(t, { ...range, ...target.value(bytes('same')) })).toBe(true);
      expect(await holds(t, { ...range, ...target.version(1n) })).toBe(false);
      expect(await holds(t, { ...range, ...target.version(0n), result: Result.GREATER })).toBe(true);
      const exceptB = { key: t.key('c'), rangeEnd: range.rangeEnd };
      expect(await holds(t, { ...exceptB, ...target.version(1n) })).toBe(true);
    },
  },
  {
    name: 'compares an empty range as a missing key',
    run: async (t) => {
      const none = t.all('none');
      expect(await holds(t, { ...none, ...target.version(0n) })).toBe(true);
      expect(await holds(t, { ...none, ...target.create(0n), result: Result.GREATER })).toBe(false);
      expect(await holds(t, { ...none, ...target.value(bytes('')) })).toBe(false);
    },
  },
  {
    name: 'treats a range end of one zero byte as no end',
    run: async (t) => {
      await t.put('a', '1');
      const range = { key: t.key('a'), rangeEnd: bytes('\0') };
      expect(await holds(t, { ...range, ...target.create(0n), result: Result.GREATER })).toBe(true);
      expect(await holds(t, { ...range, ...target.create(0n) })).toBe(false);
    },
  },
];

export const kvTxnCompare: CaseGroup = { name: 'KV.Txn, compares', cases: [...targets, ...missingKeys, ...ranges] };
