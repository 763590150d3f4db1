import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import { addRole, addUser, authRevisionsBy, logIn, nameIn, authOn } from './accounts.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

const users: Case[] = [
  {
    name: 'adds a user once, and none without a name',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      await addUser(t, name);
      expect(await refusalOf(t.auth.userAdd({ name, password: 'other' }))).toEqual(refused.userExists);
      expect(await refusalOf(t.auth.userAdd({ password: 'x' }))).toEqual(refused.noUser);
      await logIn(t, name);
    },
  },
  {
    name: 'lists users by name, as bytes',
    run: async (t) => {
      const names = ['b', 'B', 'a', 'ü', 'a/', '\u{1f600}', '\uffee'].map((name) => nameIn(t, '') + name);
      for (const name of names) await addUser(t, name);
      const own = (await t.auth.userList({})).users.filter((name) => names.includes(name));
      const sorted = names.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
      expect(own).toEqual(sorted);
      expect((await t.auth.userList({})).users).toContain('root');
    },
  },
  {
    name: 'shows the roles of a user by name, and knows who does not exist',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      await addUser(t, name);
      expect((await t.auth.userGet({ name })).roles).toEqual([]);
      const roles = ['m', 'z', 'a'].map((role) => nameIn(t, role));
      for (const role of roles) {
        await addRole(t, role);
        await t.auth.userGrantRole({ user: name, role });
      }
      expect((await t.auth.userGet({ name })).roles).toEqual(roles.toSorted());
      expect((await t.auth.userGet({ name: 'root' })).roles).toEqual(['root']);
      for (const unknown of [nameIn(t, 'unknown'), '']) {
        expect(await refusalOf(t.auth.userGet({ name: unknown }))).toEqual(refused.userNotFound);
      }
    },
  },
  {
    name: 'deletes a user with its tokens, and none that does not exist',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      await addUser(t, name);
      const ann = t.as({ token: await logIn(t, name) });
      await ann.auth.userGet({ name });
      await t.auth.userDelete({ name });
      expect(await refusalOf(ann.auth.userGet({ name }))).toEqual(refused.invalidToken);
      expect(await refusalOf(t.auth.authenticate({ name, password: name }))).toEqual(refused.notLoggedIn);
      for (const unknown of [name, '']) {
        expect(await refusalOf(t.auth.userDelete({ name: unknown }))).toEqual(refused.userNotFound);
      }
      await addUser(t, name);
      expect(await refusalOf(ann.auth.userGet({ name }))).toEqual(refused.invalidToken);
    },
  },
  {
    name: 'lets a user with the role root delete itself, but never root, nor take the role from root',
    run: async (t) => {
      const name = nameIn(t, 'admin');
      await addUser(t, name);
      await t.auth.userGrantRole({ user: name, role: 'root' });
      const admin = t.as({ token: await logIn(t, name) });
      expect(await refusalOf(admin.auth.userDelete({ name: 'root' }))).toEqual(refused.invalidManagement);
      const revoke = { name: 'root', role: 'root' };
      expect(await refusalOf(admin.auth.userRevokeRole(revoke))).toEqual(refused.invalidManagement);
      await admin.auth.userDelete({ name });
      expect(await refusalOf(admin.auth.userList({}))).toEqual(refused.invalidToken);
    },
  },
  {
    name: 'grants a role to a user, and takes it away',
    run: async (t) => {
      const [user, role] = [nameIn(t, 'ann'), nameIn(t, 'reader')];
      await addUser(t, user);
      const unknown = nameIn(t, 'none');
      expect(await refusalOf(t.auth.userGrantRole({ user: unknown, role: unknown }))).toEqual(refused.userNotFound);
      expect(await refusalOf(t.auth.userGrantRole({ user, role: unknown }))).toEqual(refused.roleNotFound);
      expect(await refusalOf(t.auth.userGrantRole({ user, role: '' }))).toEqual(refused.roleNotFound);
      await addRole(t, role);
      await t.auth.userGrantRole({ user, role });
      expect((await t.auth.userGet({ name: user })).roles).toEqual([role]);
      await t.auth.userRevokeRole({ name: user, role });
      expect((await t.auth.userGet({ name: user })).roles).toEqual([]);
      for (const other of [role, unknown, 'root', '']) {
        expect(await refusalOf(t.auth.userRevokeRole({ name: user, role: other }))).toEqual(refused.roleNotGranted);
      }
      expect(await refusalOf(t.auth.userRevokeRole({ name: unknown, role }))).toEqual(refused.userNotFound);
    },
  },
  {
    name: 'grants the role root without that role having been added',
    run: async (t) => {
      const name = nameIn(t, 'admin');
      await addUser(t, name);
      await t.auth.userGrantRole({ user: name, role: 'root' });
      expect((await t.auth.userGet({ name })).roles).toEqual(['root']);
      const admin = t.as({ token: await logIn(t, name) });
      await admin.put('a', '1');
      expect((await admin.auth.userList({})).users).toContain(name);
      await admin.auth.userRevokeRole({ name, role: 'root' });
      expect(await refusalOf(admin.auth.userList({}))).toEqual(refused.permissionDenied);
    },
  },
  {
    name: 'counts each change of a user, and not what changes nothing',
    since: '3.6',
    run: async (t) => {
      const [name, role] = [nameIn(t, 'ann'), nameIn(t, 'reader')];
      await addRole(t, role);
      t.cleanUp(() => t.auth.userDelete({ name }).catch(() => undefined));
      const by = (change: () => Promise<unknown>): Promise<bigint> => authRevisionsBy(t, change);
      expect(await by(() => t.auth.userAdd({ name, password: 'a' }))).toBe(1n);
      expect(await by(() => refusalOf(t.auth.userAdd({ name, password: 'a' })))).toBe(0n);
      expect(await by(() => t.auth.userChangePassword({ name, password: 'a' }))).toBe(1n);
      expect(await by(() => t.auth.userGrantRole({ user: name, role }))).toBe(1n);
      expect(await by(() => t.auth.userGrantRole({ user: name, role }))).toBe(0n);
      expect(await by(() => logIn(t, name, 'a'))).toBe(0n);
      expect(await by(() => t.auth.userRevokeRole({ name, role }))).toBe(1n);
      expect(await by(() => refusalOf(t.auth.userRevokeRole({ name, role })))).toBe(0n);
      expect(await by(() => t.auth.userDelete({ name }))).toBe(1n);
      expect(await by(() => refusalOf(t.auth.userDelete({ name })))).toBe(0n);
    },
  },
];

const passwords: Case[] = [
  {
    name: 'logs a user in with its password, and with nothing else',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      await addUser(t, name);
      const wrong = [
        [name, ''],
        [name, `${name} `],
        [name, name.toUpperCase()],
        [nameIn(t, 'unknown'), name],
        ['', name],
        ['', ''],
      ] as const;
      for (const [user, password] of wrong) {
        expect(await refusalOf(t.auth.authenticate({ name: user, password }))).toEqual(refused.notLoggedIn);
      }
      const revision = await t.revision();
      const { header, token } = await t.auth.authenticate({ name, password: name });
      expect(header?.revision).toBe(revision);
      expect(token.length).toBeGreaterThan(0);
    },
  },
  {
    name: 'changes a password: the old one and all simple tokens end',
    run: async (t) => {
      const [name, other] = [nameIn(t, 'ann'), nameIn(t, 'bob')];
      await addUser(t, name);
      await addUser(t, other);
      const tokens = [await logIn(t, name), await logIn(t, name)];
      const bob = t.as({ token: await logIn(t, other) });
      await t.auth.userChangePassword({ name, password: 'new' });
      for (const token of tokens) {
        expect(await refusalOf(t.as({ token }).auth.userGet({ name }))).toEqual(refused.invalidToken);
      }
      await bob.auth.userGet({ name: other });
      expect(await refusalOf(logIn(t, name))).toEqual(refused.notLoggedIn);
      await logIn(t, name, 'new');
      for (const unknown of [nameIn(t, 'unknown'), '']) {
        const change = t.auth.userChangePassword({ name: unknown, password: 'x' });
        expect(await refusalOf(change)).toEqual(refused.userNotFound);
      }
    },
  },
  {
    name: 'ends the tokens also when the new password is the old one',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      await addUser(t, name);
      const ann = t.as({ token: await logIn(t, name) });
      await t.auth.userChangePassword({ name, password: name });
      expect(await refusalOf(ann.auth.userGet({ name }))).toEqual(refused.invalidToken);
      await logIn(t, name);
    },
  },
  {
    name: 'takes an empty password for a password',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      t.cleanUp(() => t.auth.userDelete({ name }));
      await t.auth.userAdd({ name, options: { noPassword: false } });
      await logIn(t, name, '');
      expect(await refusalOf(logIn(t, name, 'x'))).toEqual(refused.notLoggedIn);
    },
  },
  {
    name: 'accepts no password after a change to an empty one',
    since: '3.6',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      await addUser(t, name);
      await t.auth.userChangePassword({ name, password: '' });
      for (const password of ['', name]) {
        expect(await refusalOf(logIn(t, name, password))).toEqual(refused.notLoggedIn);
      }
      await t.auth.userChangePassword({ name, password: 'new' });
      await logIn(t, name, 'new');
    },
  },
  {
    name: 'never logs in a user without a password by one, also after one was set',
    stricter: 'a stranger does not learn which users have no password, decision 031',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      t.cleanUp(() => t.auth.userDelete({ name }));
      await t.auth.userAdd({ name, password: 'ignored', options: { noPassword: true } });
      for (const password of ['', 'ignored']) {
        expect(await refusalOf(logIn(t, name, password))).toEqual(refused.noPasswordUser);
      }
      await t.auth.userChangePassword({ name, password: 'set' });
      expect(await refusalOf(logIn(t, name, 'set'))).toEqual(refused.noPasswordUser);
    },
  },
  {
    name: 'hashes the password itself, whatever hash a client gives',
    since: '3.6',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      t.cleanUp(() => t.auth.userDelete({ name }));
      await t.auth.userAdd({ name, password: 'mine', hashedPassword: 'bm90IGEgaGFzaA==' });
      await logIn(t, name, 'mine');
      await t.auth.userChangePassword({ name, password: 'other', hashedPassword: '!' });
      await logIn(t, name, 'other');
    },
  },
  {
    name: 'refuses a password of more than 72 bytes, before it looks at anything else',
    stricter: 'longer ones are allowed, decision 031',
    since: '3.6',
    run: async (t) => {
      const [name, unknown] = [nameIn(t, 'ann'), nameIn(t, 'unknown')];
      await addUser(t, name);
      const stranger = t.as({ token: 'nonsense' });
      for (const password of ['x'.repeat(73), 'é'.repeat(37)]) {
        const calls = [name, unknown, ''].flatMap((each) => [
          t.auth.userAdd({ name: each, password }),
          t.auth.userChangePassword({ name: each, password }),
          stranger.auth.userAdd({ name: each, password }),
        ]);
        const refusals = await Promise.all(calls.map(refusalOf));
        expect(refusals).toEqual(calls.map(() => refused.passwordTooLong));
      }
      await logIn(t, name);
      for (const password of ['x'.repeat(72), 'é'.repeat(36), 'a\0b']) {
        await t.auth.userChangePassword({ name, password });
        await logIn(t, name, password);
      }
      expect(await refusalOf(logIn(t, name, 'a'))).toEqual(refused.notLoggedIn);
      expect(await refusalOf(logIn(t, name, 'a\0c'))).toEqual(refused.notLoggedIn);
    },
  },
  {
    name: 'compares the first 72 bytes of a password',
    stricter: 'all bytes count, decision 031',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      await addUser(t, name);
      const password = 'x'.repeat(72);
      await t.auth.userChangePassword({ name, password });
      await logIn(t, name, `${password}y`);
      expect(await refusalOf(logIn(t, name, password.slice(1)))).toEqual(refused.notLoggedIn);
    },
  },
];

export const authUsers: CaseGroup = {
  name: 'users',
  server: authOn,
  asRoot: true,
  cases: [...users, ...passwords],
};
