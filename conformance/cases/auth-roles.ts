import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import {
  addRole,
  addUser,
  authRevisionsBy,
  logIn,
  nameIn,
  permissionsOf,
  permit,
  permitExactly,
  authOn,
  READ,
  READWRITE,
  userWith,
  WRITE,
} from './accounts.ts';
import { bytes, textOf } from './bytes.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

async function shown(t: CaseContext, role: string): Promise<string[]> {
  return permissionsOf(t, (await t.auth.roleGet({ role })).perm);
}

const roles: Case[] = [
  {
    name: 'adds a role once, and none without a name',
    run: async (t) => {
      const name = nameIn(t, 'reader');
      await addRole(t, name);
      expect(await refusalOf(t.auth.roleAdd({ name }))).toEqual(refused.roleExists);
      expect(await refusalOf(t.auth.roleAdd({}))).toEqual(refused.noRoleName);
      expect((await t.auth.roleGet({ role: name })).perm).toEqual([]);
    },
  },
  {
    name: 'lists roles by name, as bytes',
    run: async (t) => {
      const names = ['b', 'B', 'a', 'ü', 'a/', '\u{1f600}', '\uffee'].map((name) => nameIn(t, '') + name);
      for (const name of names) await addRole(t, name);
      const sorted = names.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
      const own = (await t.auth.roleList({})).roles.filter((name) => names.includes(name));
      expect(own).toEqual(sorted);
    },
  },
  {
    name: 'knows no role that was not added, the role root neither',
    run: async (t) => {
      const perm = { key: bytes('a') };
      for (const role of [nameIn(t, 'none'), '', 'root']) {
        expect(await refusalOf(t.auth.roleGet({ role }))).toEqual(refused.roleNotFound);
        expect(await refusalOf(t.auth.roleGrantPermission({ name: role, perm }))).toEqual(refused.roleNotFound);
        expect(await refusalOf(t.auth.roleRevokePermission({ role, ...perm }))).toEqual(refused.roleNotFound);
        if (role !== 'root') expect(await refusalOf(t.auth.roleDelete({ role }))).toEqual(refused.roleNotFound);
      }
      expect((await t.auth.roleList({})).roles).not.toContain('root');
    },
  },
  {
    name: 'deletes a role from its users too, and gives it to none when it is added again',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READ, 'a'));
      const name = nameIn(t, 'ann');
      await ann.get('a');
      await t.auth.roleDelete({ role: name });
      expect((await t.auth.userGet({ name })).roles).toEqual([]);
      expect(await refusalOf(ann.get('a'))).toEqual(refused.permissionDenied);
      await addRole(t, name, permit(t, READ, 'a'));
      expect((await t.auth.userGet({ name })).roles).toEqual([]);
      expect(await refusalOf(ann.get('a'))).toEqual(refused.permissionDenied);
    },
  },
  {
    name: 'does not delete the role root, which was not added',
    run: async (t) => {
      expect(await refusalOf(t.auth.roleDelete({ role: 'root' }))).toEqual(refused.invalidManagement);
    },
  },
  {
    name: 'counts each change of a role, also one that grants again what was granted',
    since: '3.6',
    run: async (t) => {
      const name = nameIn(t, 'reader');
      t.cleanUp(() => t.auth.roleDelete({ role: name }).catch(() => undefined));
      const grant = { name, perm: permit(t, READ, 'a') };
      const revoke = { role: name, key: t.key('a') };
      const by = (change: () => Promise<unknown>): Promise<bigint> => authRevisionsBy(t, change);
      expect(await by(() => t.auth.roleAdd({ name }))).toBe(1n);
      expect(await by(() => refusalOf(t.auth.roleAdd({ name })))).toBe(0n);
      expect(await by(() => t.auth.roleGrantPermission(grant))).toBe(1n);
      expect(await by(() => t.auth.roleGrantPermission(grant))).toBe(1n);
      expect(await by(() => t.auth.roleRevokePermission(revoke))).toBe(1n);
      expect(await by(() => refusalOf(t.auth.roleRevokePermission(revoke)))).toBe(0n);
      expect(await by(() => t.auth.roleDelete({ role: name }))).toBe(1n);
      expect(await by(() => refusalOf(t.auth.roleDelete({ role: name })))).toBe(0n);
    },
  },
];

const permissions: Case[] = [
  {
    name: 'shows permissions by key, and those of one key in the order in which they were granted',
    run: async (t) => {
      const role = nameIn(t, 'reader');
      const perms = [
        permit(t, READ, 'm', 'n'),
        permit(t, WRITE, 'c'),
        permit(t, READWRITE, 'm'),
        permit(t, READ, 'a', 'z'),
        permit(t, WRITE, 'a', 'b'),
        permit(t, READ, 'a'),
      ];
      await addRole(t, role, ...perms);
      expect(await shown(t, role)).toEqual(['READ a-z', 'WRITE a-b', 'READ a', 'WRITE c', 'READ m-n', 'READWRITE m']);
    },
  },
  {
    name: 'replaces the type of a permission for the same key and end, and of no other',
    run: async (t) => {
      const role = nameIn(t, 'reader');
      await addRole(t, role, permit(t, READ, 'a', 'b'), permit(t, READ, 'a', 'c'), permit(t, READ, 'b'));
      await t.auth.roleGrantPermission({ name: role, perm: permit(t, WRITE, 'a', 'b') });
      await t.auth.roleGrantPermission({ name: role, perm: permit(t, READWRITE, 'b') });
      expect(await shown(t, role)).toEqual(['WRITE a-b', 'READ a-c', 'READWRITE b']);
    },
  },
  {
    name: 'replaces the type also when another range from that key was granted before it',
    tenureOnly: 'etcd compares only the first permission of a key; otherwise it keeps both, and both apply',
    run: async (t) => {
      const role = nameIn(t, 'reader');
      await addRole(t, role, permit(t, READ, 'a', 'b'), permit(t, READWRITE, 'a', 'c'));
      await t.auth.roleGrantPermission({ name: role, perm: permit(t, READ, 'a', 'c') });
      expect(await shown(t, role)).toEqual(['READ a-b', 'READ a-c']);
    },
  },
  {
    name: 'keeps the end of a range as given: nothing, the byte 0, a key',
    run: async (t) => {
      const role = nameIn(t, 'reader');
      const ends = ['', '\0', 'z'];
      await addRole(t, role, ...ends.map((end) => permitExactly(READ, 'k', end)), permitExactly(READ, '\0', '\0'));
      const { perm } = await t.auth.roleGet({ role });
      expect(perm.map(({ key, rangeEnd }) => [textOf(key), textOf(rangeEnd)])).toEqual([
        ['\0', '\0'],
        ...ends.map((end) => ['k', end]),
      ]);
    },
  },
  {
    name: 'refuses a permission without a key, or with an end that is not after the key',
    since: '3.6',
    run: async (t) => {
      const name = nameIn(t, 'reader');
      const perm = permit(t, READ, 'a');
      expect(await refusalOf(t.auth.roleGrantPermission({ name }))).toEqual(refused.permissionNotGiven);
      await addRole(t, name);
      expect(await refusalOf(t.auth.roleGrantPermission({ name }))).toEqual(refused.permissionNotGiven);
      for (const [key, end] of [
        ['', ''],
        ['', 'z'],
        ['', '\0'],
        ['k', 'a'],
        ['k', 'k'],
      ] as const) {
        const grant = t.auth.roleGrantPermission({ name, perm: permitExactly(READ, key, end) });
        expect(await refusalOf(grant), `${key}-${end}`).toEqual(refused.invalidManagement);
      }
      await t.auth.roleGrantPermission({ name, perm });
      expect(await shown(t, name)).toEqual(['READ a']);
    },
  },
  {
    name: 'takes a permission away by its exact key and end',
    run: async (t) => {
      const role = nameIn(t, 'reader');
      await addRole(t, role, permit(t, READ, 'a', 'c'), permit(t, READ, 'a'));
      const key = t.key('a');
      for (const other of [
        { key: t.key('b') },
        { key, rangeEnd: t.key('b') },
        { key: t.key('b'), rangeEnd: t.key('c') },
        {},
      ]) {
        const revoke = t.auth.roleRevokePermission({ role, ...other });
        expect(await refusalOf(revoke)).toEqual(refused.permissionNotGranted);
      }
      await t.auth.roleRevokePermission({ role, key });
      expect(await shown(t, role)).toEqual(['READ a-c']);
      await t.auth.roleRevokePermission({ role, key, rangeEnd: t.key('c') });
      expect(await shown(t, role)).toEqual([]);
    },
  },
  {
    name: 'shows a role to its users and to root, and a user to itself and to root',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READ, 'a'));
      const bob = await userWith(t, 'bob', permit(t, READ, 'b'));
      const [annName, bobName] = [nameIn(t, 'ann'), nameIn(t, 'bob')];
      expect((await ann.auth.userGet({ name: annName })).roles).toEqual([annName]);
      expect(await shown(ann, annName)).toEqual(['READ a']);
      for (const other of [bobName, 'root', nameIn(t, 'unknown'), '']) {
        expect(await refusalOf(ann.auth.userGet({ name: other }))).toEqual(refused.permissionDenied);
        expect(await refusalOf(ann.auth.roleGet({ role: other }))).toEqual(refused.permissionDenied);
      }
      await t.auth.userGrantRole({ user: annName, role: bobName });
      expect(await shown(ann, bobName)).toEqual(['READ b']);
      expect(await shown(bob, bobName)).toEqual(['READ b']);
    },
  },
  {
    name: 'apply at once to tokens that were given before',
    run: async (t) => {
      const user = nameIn(t, 'ann');
      await addUser(t, user);
      const ann = t.as({ token: await logIn(t, user) });
      await addRole(t, user);
      expect(await refusalOf(ann.get('a'))).toEqual(refused.permissionDenied);
      await t.auth.userGrantRole({ user, role: user });
      expect(await refusalOf(ann.get('a'))).toEqual(refused.permissionDenied);
      await t.auth.roleGrantPermission({ name: user, perm: permit(t, READWRITE, 'a') });
      await ann.put('a', '1');
      await t.auth.roleGrantPermission({ name: user, perm: permit(t, READ, 'a') });
      expect(await ann.get('a')).toMatchObject({ version: 1n });
      expect(await refusalOf(ann.put('a'))).toEqual(refused.permissionDenied);
      await t.auth.userRevokeRole({ name: user, role: user });
      expect(await refusalOf(ann.get('a'))).toEqual(refused.permissionDenied);
    },
  },
];

export const authRoles: CaseGroup = {
  name: 'roles',
  server: authOn,
  asRoot: true,
  cases: [...roles, ...permissions],
};
