import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import { permit, authOn, READ, READWRITE, userWith, WRITE } from './accounts.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';
import { op, target } from './txn-parts.ts';

const { permissionDenied } = refused;

interface Callers {
  readonly reader: CaseContext;
  readonly writer: CaseContext;
  readonly both: CaseContext;
}

/** Three users with one type of permission each for the keys from `k` to `l`. */
async function callers(t: CaseContext): Promise<Callers> {
  return {
    reader: await userWith(t, 'reader', permit(t, READ, 'k', 'l')),
    writer: await userWith(t, 'writer', permit(t, WRITE, 'k', 'l')),
    both: await userWith(t, 'both', permit(t, READWRITE, 'k', 'l')),
  };
}

async function expectDenied(...calls: Promise<unknown>[]): Promise<void> {
  const refusals = await Promise.all(calls.map(refusalOf));
  expect(refusals).toEqual(calls.map(() => permissionDenied));
}

const single: Case[] = [
  {
    name: 'are read with READ, also at a past revision, counted, and from this server alone',
    run: async (t) => {
      const { reader, writer } = await callers(t);
      const revision = await t.put('k', '1');
      await t.put('k', '2');
      for (const request of [{}, { revision }, { countOnly: true }, { keysOnly: true }, { serializable: true }]) {
        const range = { key: t.key('k'), ...request };
        expect((await reader.kv.range(range)).count).toBe(1n);
        await expectDenied(writer.kv.range(range), reader.kv.range({ ...range, key: t.key('z') }));
      }
      await expectDenied(reader.kv.range({ key: t.key('z'), revision: revision + 1000n }));
    },
  },
  {
    name: 'are written with WRITE, and the previous value is read with READ',
    run: async (t) => {
      const { reader, writer, both } = await callers(t);
      const key = t.key('k');
      await t.put('k', '1');
      await expectDenied(
        reader.kv.put({ key }),
        writer.kv.put({ key, prevKv: true }),
        writer.kv.put({ key: t.key('z') }),
      );
      await writer.kv.put({ key });
      expect((await both.kv.put({ key, prevKv: true })).prevKv).toMatchObject({ version: 2n });
      expect(await t.get('k')).toMatchObject({ version: 3n });
    },
  },
  {
    name: 'keep their value or lease with WRITE alone, whatever else has that lease',
    run: async (t) => {
      const { writer } = await callers(t);
      const lease = await t.grant();
      for (const name of ['k', 'z']) await t.put(name, 'kept', lease);
      await writer.kv.put({ key: t.key('k'), value: new Uint8Array([1]), ignoreLease: true });
      expect(await t.get('k')).toMatchObject({ version: 2n, lease });
      await writer.kv.put({ key: t.key('k'), ignoreValue: true });
      expect(await t.get('k')).toMatchObject({ version: 3n, lease: 0n });
      await expectDenied(writer.kv.put({ key: t.key('z'), ignoreValue: true }));
      expect(await refusalOf(writer.kv.put({ key: t.key('k0'), ignoreValue: true }))).toEqual(refused.keyNotFound);
    },
  },
  {
    name: 'are deleted with WRITE on all of the range, and the previous values are read with READ',
    run: async (t) => {
      const { reader, writer, both } = await callers(t);
      for (const name of ['k1', 'k2']) await t.put(name);
      const range = { key: t.key('k'), rangeEnd: t.key('l') };
      await expectDenied(
        reader.kv.deleteRange(range),
        writer.kv.deleteRange({ ...range, prevKv: true }),
        both.kv.deleteRange({ ...range, rangeEnd: t.key('m') }),
        both.kv.deleteRange({ ...range, key: t.key('j') }),
        both.kv.deleteRange({ key: t.key('z') }),
      );
      expect((await writer.kv.deleteRange({ key: t.key('k1') })).deleted).toBe(1n);
      expect((await both.kv.deleteRange({ ...range, prevKv: true })).prevKvs).toHaveLength(1);
    },
  },
  {
    name: 'are compacted by those with the role root only',
    since: '3.6',
    run: async (t) => {
      const { both } = await callers(t);
      const revision = await t.put('k');
      await expectDenied(both.kv.compact({ revision }), both.kv.compact({ revision: revision + 1000n }));
      expect(await refusalOf(t.as({}).kv.compact({ revision }))).toEqual(refused.noUser);
    },
  },
];

const txns: Case[] = [
  {
    name: 'is read by comparisons, so each needs READ on its keys',
    run: async (t) => {
      const { reader, writer } = await callers(t);
      const own = { key: t.key('k'), ...target.version(0n) };
      expect((await reader.kv.txn({ compare: [own] })).succeeded).toBe(true);
      await expectDenied(
        writer.kv.txn({ compare: [own] }),
        reader.kv.txn({ compare: [own, { key: t.key('z'), ...target.version(0n) }] }),
        reader.kv.txn({ compare: [{ ...own, rangeEnd: t.key('m') }] }),
      );
      expect((await reader.kv.txn({ compare: [{ ...own, rangeEnd: t.key('l') }] })).succeeded).toBe(true);
    },
  },
  {
    name: 'needs the permissions of both branches, taken or not',
    run: async (t) => {
      const { reader, writer, both } = await callers(t);
      const [own, foreign] = [op.put({ key: t.key('k') }), op.put({ key: t.key('z') })];
      await writer.kv.txn({ success: [own] });
      await expectDenied(
        reader.kv.txn({ failure: [own] }),
        both.kv.txn({ success: [own], failure: [foreign] }),
        both.kv.txn({ success: [foreign] }),
        writer.kv.txn({ failure: [op.range({ key: t.key('k') })] }),
        both.kv.txn({ failure: [op.delete({ key: t.key('k'), rangeEnd: t.key('m') })] }),
        both.kv.txn({ success: [own], failure: [op.range({ key: t.key('z'), serializable: true })] }),
      );
      expect(await t.get('k')).toMatchObject({ version: 1n });
    },
  },
  {
    name: 'needs READ for previous values',
    since: '3.6',
    run: async (t) => {
      const { writer, both } = await callers(t);
      const key = t.key('k');
      const previous = [op.put({ key, prevKv: true }), op.delete({ key, prevKv: true })];
      for (const each of previous) {
        await expectDenied(writer.kv.txn({ success: [each] }), writer.kv.txn({ failure: [each] }));
        await both.kv.txn({ success: [each] });
      }
    },
  },
  {
    name: 'needs the permissions of transactions within it',
    since: '3.6',
    run: async (t) => {
      const { reader, both } = await callers(t);
      const foreign = op.txn({ success: [op.put({ key: t.key('z') })] });
      await expectDenied(
        both.kv.txn({ success: [foreign] }),
        both.kv.txn({ failure: [op.txn({ failure: [foreign] })] }),
        both.kv.txn({ failure: [op.txn({ compare: [{ key: t.key('z'), ...target.version(0n) }] })] }),
        reader.kv.txn({ success: [op.txn({ success: [op.put({ key: t.key('k') })] })] }),
      );
      const own = op.txn({ success: [op.put({ key: t.key('k') })] });
      expect((await both.kv.txn({ success: [own] })).succeeded).toBe(true);
      expect(await t.get('z')).toBeUndefined();
    },
  },
  {
    name: 'without anything in it is open to all, but not to an invalid token',
    stricter: 'it takes a user, decision 031',
    run: async (t) => {
      const { reader } = await callers(t);
      for (const caller of [t, reader, t.as({})]) expect((await caller.kv.txn({})).succeeded).toBe(true);
      expect(await refusalOf(t.as({ token: 'nonsense' }).kv.txn({}))).toEqual(refused.invalidToken);
    },
  },
];

export const authKeys: CaseGroup = { name: 'keys with auth', server: authOn, asRoot: true, cases: single };
export const authTxn: CaseGroup = { name: 'a transaction with auth', server: authOn, asRoot: true, cases: txns };
