import { expect } from 'vitest';
import { Refusal, refusalOf } from '../client/refusal.ts';
import {
  addRole,
  nameIn,
  permit,
  permitExactly,
  authOn,
  READ,
  READWRITE,
  userWith,
  WRITE,
  type Permission,
} from './accounts.ts';
import { bytes } from './bytes.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

interface Keys {
  readonly key: Uint8Array<ArrayBuffer>;
  readonly rangeEnd: Uint8Array<ArrayBuffer>;
}

const exactly = (key: string, end = ''): Keys => ({ key: bytes(key), rangeEnd: bytes(end) });

/** Whether the caller may do it; throws when it is refused for another reason than its permissions. */
async function isAllowed(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (error instanceof Refusal && error.details === refused.permissionDenied.details) return false;
    throw error;
  }
}

const mayRead = (t: CaseContext, keys: Keys): Promise<boolean> => isAllowed(t.kv.range({ ...keys, limit: 1n }));
const mayDelete = (t: CaseContext, keys: Keys): Promise<boolean> => isAllowed(t.kv.deleteRange(keys));

/** Reads by pairs of names, `a-c`, `a` for one key, in the key space of the case. */
async function expectReads(t: CaseContext, expected: Readonly<Record<string, boolean>>): Promise<void> {
  for (const [range, allowed] of Object.entries(expected)) {
    const [from = '', to] = range.split('-');
    const keys = { key: t.key(from), rangeEnd: to === undefined ? bytes('') : t.key(to) };
    expect(await mayRead(t, keys), `${range} may be read`).toBe(allowed);
  }
}

const merging: Case[] = [
  {
    name: 'are one permission where they touch or overlap',
    run: async (t) => {
      const touching = await userWith(t, 'ann', permit(t, READ, 'b', 'c'), permit(t, READ, 'a', 'b'));
      const within = { 'a-c': true, 'a-b': true, 'aa-bb': true, a: true, bz: true };
      await expectReads(touching, { ...within, c: false, 'a-d': false, '0-b': false, 'a-c0': false });
      const overlapping = await userWith(t, 'bob', permit(t, READ, 'a', 'f'), permit(t, READ, 'c', 'h'));
      await expectReads(overlapping, { 'a-h': true, 'b-g': true, 'a-i': false });
      const inside = await userWith(
        t,
        'cid',
        permit(t, READ, 'c', 'd'),
        permit(t, READ, 'a', 'h'),
        permit(t, READ, 'e'),
      );
      await expectReads(inside, { 'a-h': true, 'd-f': true, h: false });
      const apart = await userWith(t, 'dan', permit(t, READ, 'a', 'b'), permit(t, READ, 'c', 'd'));
      await expectReads(apart, { 'a-b': true, 'c-d': true, 'a-d': false, b: false });
    },
  },
  {
    name: 'for one key are ranges of that key alone',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READ, 'e'), permit(t, READ, 'f', 'g'));
      await expectReads(ann, { e: true, 'e-e\0': true, 'e\0': false, 'e-f': false, 'e-e\0\0': false });
      const bob = await userWith(t, 'bob', permit(t, READ, 'e'), permit(t, READ, 'e\0', 'f'));
      await expectReads(bob, { 'e-f': true });
    },
  },
  {
    name: 'are merged over all roles, and over types that include what is needed',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READWRITE, 'a', 'm'), permit(t, READ, 'h', 'r'));
      const other = nameIn(t, 'other');
      await addRole(t, other, permit(t, READ, 'r', 'z'), permit(t, WRITE, 'm', 'n'));
      await t.auth.userGrantRole({ user: nameIn(t, 'ann'), role: other });
      await expectReads(ann, { 'a-z': true, z: false });
      expect(await mayDelete(ann, { key: ann.key('a'), rangeEnd: ann.key('n') })).toBe(true);
      expect(await mayDelete(ann, { key: ann.key('a'), rangeEnd: ann.key('o') })).toBe(false);
      expect(await mayDelete(ann, { key: ann.key('h'), rangeEnd: ann.key('r') })).toBe(false);
    },
  },
];

const open: Case[] = [
  {
    name: 'from a key on allow every range that begins there or later',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permitExactly(READWRITE, 'k', '\0'));
      for (const keys of [exactly('k', '\0'), exactly('z', '\0'), exactly('k', 'z'), exactly('\xff\xff')]) {
        expect(await mayRead(ann, keys)).toBe(true);
        expect(await mayDelete(ann, keys)).toBe(true);
      }
      for (const keys of [exactly('j', '\0'), exactly('\0', '\0'), exactly('j'), exactly('j', 'l')]) {
        expect(await mayRead(ann, keys)).toBe(false);
        expect(await mayDelete(ann, keys)).toBe(false);
      }
    },
  },
  {
    name: 'for all keys allow everything; for the key 0 alone, that key',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permitExactly(READ, '\0', '\0'));
      const every = [exactly('\0', '\0'), exactly('k', '\0'), exactly('a', 'z'), exactly('q'), exactly('\0')];
      for (const keys of every) expect(await mayRead(ann, keys)).toBe(true);
      const bob = await userWith(t, 'bob', permitExactly(READ, '\0'));
      expect(await mayRead(bob, exactly('\0'))).toBe(true);
      expect(await mayRead(bob, exactly('a'))).toBe(false);
      expect(await mayRead(bob, exactly('\0', '\0'))).toBe(false);
    },
  },
  {
    name: 'need an end that is open for a range without an end',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permitExactly(READ, 'a', 'c'), permitExactly(READ, 'c', '\0'));
      expect(await mayRead(ann, exactly('a', '\0'))).toBe(true);
      expect(await mayRead(ann, exactly('b', 'z'))).toBe(true);
      const bob = await userWith(t, 'bob', permitExactly(READ, 'a', '\xff'));
      expect(await mayRead(bob, exactly('a', '\xff'))).toBe(true);
      expect(await mayRead(bob, exactly('a', '\0'))).toBe(false);
      expect(await mayRead(bob, exactly('a', '\xff\xff'))).toBe(false);
    },
  },
  {
    name: 'are asked for a range that is empty: its end may not pass theirs, and its key must be theirs',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READ, 'k', 'l'));
      await expectReads(ann, { 'k5-k1': true, 'k5-k5': true, 'k5-a': true, 'z5-k1': false, 'z5-z1': false });
      const bob = await userWith(t, 'bob', permit(t, WRITE, 'k', 'l'));
      expect(await mayDelete(bob, { key: bob.key('k5'), rangeEnd: bob.key('k1') })).toBe(true);
      expect(await mayDelete(bob, { key: bob.key('z5'), rangeEnd: bob.key('z1') })).toBe(false);
    },
  },
  {
    name: 'of a type that does not exist are kept, and allow nothing',
    stricter: 'they are refused, decision 031',
    run: async (t) => {
      const ann = await userWith(t, 'ann', { permType: 7, key: t.key('a') } as Permission);
      const { perm } = await t.auth.roleGet({ role: nameIn(t, 'ann') });
      expect(perm.map(({ permType }) => Number(permType))).toEqual([7]);
      expect(await refusalOf(ann.get('a'))).toEqual(refused.permissionDenied);
      expect(await refusalOf(ann.put('a'))).toEqual(refused.permissionDenied);
    },
  },
];

export const authRanges: CaseGroup = {
  name: 'permissions',
  server: authOn,
  asRoot: true,
  cases: [...merging, ...open],
};
