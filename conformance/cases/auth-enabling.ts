import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import { authOff, authRevisionsBy, logIn, permissionsOf, READWRITE } from './accounts.ts';
import { textOf } from './bytes.ts';
import { revisionOf, type CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

/** Auth is off and without accounts again when the case ends. */
function restore(t: CaseContext): void {
  t.cleanUp(async () => {
    const token = await logIn(t, 'root').catch(() => '');
    await t.auth.authDisable({}, token === '' ? {} : { metadata: { token } });
    const { users } = await t.auth.userList({});
    for (const name of users) await t.auth.userDelete({ name });
    const { roles } = await t.auth.roleList({});
    for (const role of roles) await t.auth.roleDelete({ role });
  });
}

/** The user root, with its role, and root's context once auth is enabled. */
async function enable(t: CaseContext): Promise<CaseContext> {
  restore(t);
  await t.auth.userAdd({ name: 'root', password: 'root' });
  await t.auth.userGrantRole({ user: 'root', role: 'root' });
  await t.auth.authEnable({});
  return t.as({ token: await logIn(t, 'root') });
}

const off: Case[] = [
  {
    name: 'are kept while auth is off, and are asked for nothing',
    run: async (t) => {
      restore(t);
      await t.auth.userAdd({ name: 'ann', password: 'a' });
      await t.auth.roleAdd({ name: 'reader' });
      await t.auth.roleGrantPermission({ name: 'reader', perm: { key: t.key('a') } });
      await t.auth.userGrantRole({ user: 'ann', role: 'reader' });
      expect((await t.auth.userGet({ name: 'ann' })).roles).toEqual(['reader']);
      expect(permissionsOf(t, (await t.auth.roleGet({ role: 'reader' })).perm)).toEqual(['READ a']);
      await t.put('b', '1');
      expect(await t.get('b')).toMatchObject({ version: 1n });
    },
  },
  {
    name: 'show all keys for the role root, and know what was granted to it',
    since: '3.6',
    run: async (t) => {
      restore(t);
      const shown = async (): Promise<unknown[]> => {
        const { perm } = await t.auth.roleGet({ role: 'root' });
        return perm.map(({ permType, key, rangeEnd }) => [permType, textOf(key), textOf(rangeEnd)]);
      };
      const everything = [[READWRITE, '', '\0']];
      const revoked = { role: 'root', key: t.key('a') };
      await t.auth.roleAdd({ name: 'root' });
      expect(await shown()).toEqual(everything);
      expect(await refusalOf(t.auth.roleRevokePermission(revoked))).toEqual(refused.permissionNotGranted);
      await t.auth.roleGrantPermission({ name: 'root', perm: { key: t.key('a') } });
      expect(await shown()).toEqual(everything);
      await t.auth.roleRevokePermission(revoked);
      expect(await refusalOf(t.auth.roleRevokePermission(revoked))).toEqual(refused.permissionNotGranted);
    },
  },
  {
    name: 'do not change the revision of the keys, which each reply has',
    run: async (t) => {
      restore(t);
      const revision = await t.revision();
      const replies = [
        await t.auth.userAdd({ name: 'ann', password: 'a' }),
        await t.auth.userGet({ name: 'ann' }),
        await t.auth.userList({}),
        await t.auth.userChangePassword({ name: 'ann', password: 'b' }),
        await t.auth.roleAdd({ name: 'reader' }),
        await t.auth.roleGrantPermission({ name: 'reader', perm: { key: t.key('a') } }),
        await t.auth.roleGet({ role: 'reader' }),
        await t.auth.roleList({}),
        await t.auth.userGrantRole({ user: 'ann', role: 'reader' }),
        await t.auth.userRevokeRole({ name: 'ann', role: 'reader' }),
        await t.auth.roleRevokePermission({ role: 'reader', key: t.key('a') }),
        await t.auth.roleDelete({ role: 'reader' }),
        await t.auth.userDelete({ name: 'ann' }),
        await t.auth.authDisable({}),
      ];
      expect(replies.map(revisionOf)).toEqual(replies.map(() => revision));
      for (const { header } of replies) expect(header?.raftTerm).toBeGreaterThan(0n);
      expect(await t.revision()).toBe(revision);
    },
  },
  {
    name: 'give no token while auth is off, for no name and password',
    run: async (t) => {
      restore(t);
      await t.auth.userAdd({ name: 'ann', password: 'a' });
      for (const [name, password] of [
        ['ann', 'a'],
        ['ann', 'wrong'],
        ['unknown', 'a'],
        ['', ''],
      ] as const) {
        expect(await refusalOf(t.auth.authenticate({ name, password }))).toEqual(refused.authNotEnabled);
      }
    },
  },
  {
    name: 'ignore a token while auth is off, also one that was never given',
    since: '3.6',
    run: async (t) => {
      const other = t.as({ token: 'nonsense' });
      await other.put('a', '1');
      expect(await other.get('a')).toMatchObject({ version: 1n });
      const { watchId } = await other.watchStream().create({ key: t.key('a') });
      expect(watchId).toBe(0n);
      expect((await other.auth.userList({})).users).toEqual([]);
    },
  },
];

const enabling: Case[] = [
  {
    name: 'needs the user root, and that it has the role root',
    run: async (t) => {
      restore(t);
      expect(await refusalOf(t.auth.authEnable({}))).toEqual(refused.noRootUser);
      await t.auth.userAdd({ name: 'root', password: 'root' });
      expect(await refusalOf(t.auth.authEnable({}))).toEqual(refused.rootWithoutRole);
      await t.auth.roleAdd({ name: 'admin' });
      await t.auth.userGrantRole({ user: 'root', role: 'admin' });
      expect(await refusalOf(t.auth.authEnable({}))).toEqual(refused.rootWithoutRole);
      await t.auth.userGrantRole({ user: 'root', role: 'root' });
      await t.auth.authEnable({});
      expect(await refusalOf(t.revision())).toEqual(refused.noUser);
    },
  },
  {
    name: 'is reported, and done again without effect',
    since: '3.6',
    run: async (t) => {
      expect(await t.auth.authStatus({})).toMatchObject({ enabled: false });
      const root = await enable(t);
      const before = await root.auth.authStatus({});
      expect(before.enabled).toBe(true);
      await root.auth.authEnable({});
      expect(await root.auth.authStatus({})).toMatchObject({ enabled: true, authRevision: before.authRevision });
    },
  },
  {
    name: 'does not count as a change of the auth store; disabling does, once',
    since: '3.6',
    run: async (t) => {
      restore(t);
      await t.auth.userAdd({ name: 'root', password: 'root' });
      await t.auth.userGrantRole({ user: 'root', role: 'root' });
      const { authRevision } = await t.auth.authStatus({});
      await t.auth.authEnable({});
      const root = t.as({ token: await logIn(t, 'root') });
      expect((await root.auth.authStatus({})).authRevision).toBe(authRevision);
      await root.auth.authDisable({});
      expect((await t.auth.authStatus({})).authRevision).toBe(authRevision + 1n);
      expect(await authRevisionsBy(t, () => t.auth.authDisable({}))).toBe(0n);
    },
  },
  {
    name: 'and disabling keep users, roles and permissions, but end every simple token',
    run: async (t) => {
      const root = await enable(t);
      await root.auth.userAdd({ name: 'ann', password: 'a' });
      await root.auth.roleAdd({ name: 'reader' });
      await root.auth.roleGrantPermission({ name: 'reader', perm: { key: t.key('a') } });
      await root.auth.userGrantRole({ user: 'ann', role: 'reader' });
      const ann = t.as({ token: await logIn(t, 'ann', 'a') });
      await ann.get('a');
      await root.auth.authDisable({});
      await t.put('b');
      await t.auth.authEnable({});
      expect(await refusalOf(ann.get('a'))).toEqual(refused.invalidToken);
      expect(await refusalOf(root.auth.userList({}))).toEqual(refused.invalidToken);
      const again = t.as({ token: await logIn(t, 'ann', 'a') });
      expect(await again.get('a')).toBeUndefined();
      expect(await refusalOf(again.get('b'))).toEqual(refused.permissionDenied);
    },
  },
  {
    name: 'is undone by each user with the role root, and by no other caller',
    run: async (t) => {
      const root = await enable(t);
      for (const name of ['ann', 'admin']) await root.auth.userAdd({ name, password: name });
      await root.auth.userGrantRole({ user: 'admin', role: 'root' });
      const ann = t.as({ token: await logIn(t, 'ann') });
      expect(await refusalOf(t.auth.authDisable({}))).toEqual(refused.noUser);
      expect(await refusalOf(ann.auth.authDisable({}))).toEqual(refused.permissionDenied);
      expect(await refusalOf(t.as({ token: 'nonsense' }).auth.authDisable({}))).toEqual(refused.invalidToken);
      await t.as({ token: await logIn(t, 'admin') }).auth.authDisable({});
      await t.put('a');
    },
  },
  {
    name: 'protects root and its role; while auth is off both can be taken away',
    run: async (t) => {
      const root = await enable(t);
      expect(await refusalOf(root.auth.userDelete({ name: 'root' }))).toEqual(refused.invalidManagement);
      const revoke = { name: 'root', role: 'root' };
      expect(await refusalOf(root.auth.userRevokeRole(revoke))).toEqual(refused.invalidManagement);
      expect(await refusalOf(root.auth.roleDelete({ role: 'root' }))).toEqual(refused.invalidManagement);
      await root.auth.authDisable({});
      expect(await refusalOf(t.auth.roleDelete({ role: 'root' }))).toEqual(refused.roleNotFound);
      await t.auth.userRevokeRole(revoke);
      expect(await refusalOf(t.auth.authEnable({}))).toEqual(refused.rootWithoutRole);
      await t.auth.userDelete({ name: 'root' });
      expect(await refusalOf(t.auth.authEnable({}))).toEqual(refused.noRootUser);
    },
  },
  {
    name: 'leaves the role root as it is when it was added: all keys, whatever is granted to it or taken away',
    since: '3.6',
    run: async (t) => {
      const root = await enable(t);
      const everything = [{ permType: READWRITE, from: '', to: '\0' }];
      const shown = async (): Promise<unknown> =>
        (await root.auth.roleGet({ role: 'root' })).perm.map(({ permType, key, rangeEnd }) => ({
          permType,
          from: textOf(key),
          to: textOf(rangeEnd),
        }));
      await root.auth.roleAdd({ name: 'root' });
      expect((await root.auth.roleList({})).roles).toEqual(['root']);
      expect(await shown()).toEqual(everything);
      await root.auth.roleGrantPermission({ name: 'root', perm: { key: t.key('a') } });
      expect(await shown()).toEqual(everything);
      await root.auth.roleRevokePermission({ role: 'root', key: t.key('a') });
      expect(await shown()).toEqual(everything);
      expect(await refusalOf(root.auth.roleDelete({ role: 'root' }))).toEqual(refused.invalidManagement);
      await root.put('a');
    },
  },
  {
    name: 'does not end what was open before: watches go on, and a renewal is checked',
    stricter: 'a watch ends with its permission, decision 030',
    since: '3.6',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a') });
      const lease = await t.grant();
      const renewals = t.keepAliveStream();
      await renewals.renew(lease);
      const root = await enable(t);
      const revision = await root.put('a', '1');
      expect(t.events(await watch.events(watchId, 1), revision - 1n)).toEqual(['PUT a=1 +1']);
      expect(await watch.create({ key: t.key('a') })).toMatchObject({ created: true, canceled: true });
      renewals.send(lease);
      expect(await renewals.ended).toEqual(refused.noUser);
    },
  },
];

export const authAccounts: CaseGroup = { name: 'accounts', server: authOff, cases: off };
export const authEnabling: CaseGroup = { name: 'enabling auth', server: authOff, cases: enabling };
