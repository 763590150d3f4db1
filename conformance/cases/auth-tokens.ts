import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import type { ServerOptions } from '../servers/server-options.ts';
import { addUser, authOn, logIn, nameIn, permit, READ, rootPassword, userWith } from './accounts.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

const simpleTokenTtlSeconds = 3;
const shortLived: ServerOptions = { bcryptCost: 4, simpleTokenTtlSeconds };
const jwtTtlSeconds = 4;
const signed: ServerOptions = { bcryptCost: 4, jwtTtlSeconds };
/** Tokens end some time after their last use: a second in etcd. */
const graceMs = 2000;

const metadata: Case[] = [
  {
    name: 'is another at each login, and all are valid at once',
    run: async (t) => {
      const name = nameIn(t, 'ann');
      await addUser(t, name);
      const tokens = [await logIn(t, name), await logIn(t, name), await logIn(t, name)];
      expect(new Set(tokens).size).toBe(3);
      for (const token of tokens) await t.as({ token }).auth.userGet({ name });
    },
  },
  {
    name: 'is letters, a point and a number',
    run: async (t) => {
      expect(await logIn(t, 'root', rootPassword)).toMatch(/^[A-Za-z]{16}\.[0-9]+$/);
    },
  },
  {
    name: 'is read from `token` or `authorization`, with or without the word Bearer',
    since: '3.6',
    run: async (t) => {
      const token = await logIn(t, 'root', rootPassword);
      const valid = [{ token }, { authorization: token }, { authorization: `Bearer ${token}` }];
      for (const each of [...valid, { token: `Bearer ${token}` }, { token, authorization: 'nonsense' }]) {
        expect((await t.as(each).auth.userList({})).users).toContain('root');
      }
      for (const each of [{ authorization: 'nonsense' }, { token: 'nonsense', authorization: token }]) {
        expect(await refusalOf(t.as(each).auth.userList({}))).toEqual(refused.invalidToken);
      }
    },
  },
  {
    name: 'is invalid when it is empty, cut, or of other letters',
    run: async (t) => {
      const token = await logIn(t, 'root', rootPassword);
      const other = token.startsWith('a') ? 'b' : 'a';
      const wrong = ['', token.slice(0, -1), `x${token}`, other + token.slice(1), token.slice(1), 'x'.repeat(4000)];
      for (const each of wrong) {
        expect(await refusalOf(t.as({ token: each }).put('a')), each).toEqual(refused.invalidToken);
      }
    },
  },
  {
    name: 'is not needed to log in, and not looked at',
    since: '3.6',
    run: async (t) => {
      await logIn(t.as({}), 'root', rootPassword);
      await logIn(t.as({ token: 'nonsense' }), 'root', rootPassword);
    },
  },
  {
    name: 'is looked at after what is wrong with the request itself',
    run: async (t) => {
      for (const caller of [t.as({}), t.as({ token: 'nonsense' }), await userWith(t, 'ann')]) {
        expect(await refusalOf(caller.kv.range({}))).toEqual(refused.emptyKey);
        expect(await refusalOf(caller.kv.put({}))).toEqual(refused.emptyKey);
        const put = { request: { case: 'requestPut', value: { key: t.key('a') } } } as const;
        expect(await refusalOf(caller.kv.txn({ success: [put, put] }))).toEqual(refused.duplicateKey);
      }
    },
  },
  {
    name: 'is looked at before what the store would refuse',
    since: '3.6',
    run: async (t) => {
      const future = { key: t.key('a'), revision: (await t.revision()) + 1000n };
      for (const [caller, refusal] of [
        [t.as({}), refused.noUser],
        [t.as({ token: 'nonsense' }), refused.invalidToken],
        [await userWith(t, 'ann'), refused.permissionDenied],
      ] as const) {
        const calls = [
          caller.kv.range(future),
          caller.kv.compact({ revision: future.revision }),
          caller.kv.put({ key: t.key('a'), ignoreValue: true }),
          caller.auth.userAdd({}),
          caller.auth.roleAdd({}),
          caller.auth.userGet({ name: nameIn(t, 'unknown') }),
          caller.auth.roleGrantPermission({}),
          caller.cluster.memberUpdate({ ID: 5n, peerURLs: ['nonsense'] }),
          caller.maintenance.hashKV({ revision: future.revision }),
        ];
        expect(await Promise.all(calls.map(refusalOf))).toEqual(calls.map(() => refusal));
      }
    },
  },
  {
    name: 'is not needed for health and metrics over HTTP',
    since: '3.6',
    run: async (t) => {
      for (const path of ['/health', '/livez', '/readyz', '/version', '/metrics']) {
        const { status } = await fetch(`http://${t.server.address}${path}`);
        expect(status, path).toBe(200);
      }
    },
  },
  {
    name: 'of a user whose password others change is as good as before',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READ, 'a'));
      const bob = nameIn(t, 'bob');
      await addUser(t, bob);
      await t.auth.userChangePassword({ name: bob, password: 'x' });
      await t.auth.userDelete({ name: bob });
      expect(await ann.get('a')).toBeUndefined();
    },
  },
];

const lives: Case[] = [
  {
    name: 'lives on while it is used, and ends when it was not for its time',
    run: async (t) => {
      const [used, idle] = [await logIn(t, 'root', rootPassword), await logIn(t, 'root', rootPassword)];
      const user = t.as({ token: used });
      const ttlMs = simpleTokenTtlSeconds * 1000;
      // Only time ends a token, so this case lets it pass.
      for (let elapsedMs = 0; elapsedMs < ttlMs + graceMs; elapsedMs += ttlMs / 6) {
        await user.revision();
        await delay(ttlMs / 6);
      }
      await user.revision();
      expect(await refusalOf(t.as({ token: idle }).revision())).toEqual(refused.invalidToken);
    },
  },
];

function claimsOf(token: string): { header: unknown; claims: Record<string, unknown> } {
  const [header = '', claims = ''] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  return { header: JSON.parse(header), claims: JSON.parse(claims) };
}

async function newRoot(t: CaseContext): Promise<CaseContext> {
  return t.as({ token: await logIn(t, 'root', rootPassword) });
}

const jwt: Case[] = [
  {
    name: 'names its user, its end and the revision of the auth store',
    since: '3.6',
    run: async (t) => {
      const { authRevision } = await t.auth.authStatus({});
      const before = Math.floor(Date.now() / 1000);
      const { header, claims } = claimsOf(await logIn(t, 'root', rootPassword));
      expect(header).toEqual({ alg: 'RS256', typ: 'JWT' });
      expect(claims).toMatchObject({ username: 'root', revision: Number(authRevision), exp: expect.any(Number) });
      expect(claims['exp']).toBeGreaterThanOrEqual(before + jwtTtlSeconds);
      expect(claims['exp']).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000) + jwtTtlSeconds);
    },
  },
  {
    name: 'is refused when it was changed, is not signed, or has ended',
    run: async (t) => {
      const token = await logIn(t, 'root', rootPassword);
      const [header = '', claims = '', signature = ''] = token.split('.');
      const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
      const other = encoded({ ...claimsOf(token).claims, username: 'someone' });
      const wrong = [
        [header, other, signature],
        [encoded({ alg: 'none', typ: 'JWT' }), claims, ''],
        [encoded({ alg: 'HS256', typ: 'JWT' }), claims, signature],
        [header, claims, ''],
        [header, claims],
        ['nonsense'],
      ];
      for (const parts of wrong) {
        const caller = t.as({ token: parts.join('.') });
        expect(await refusalOf(caller.revision()), parts.join('.')).toEqual(refused.invalidToken);
      }
      const caller = t.as({ token });
      await caller.revision();
      await t.until('the token has ended', async () => (await caller.revision().catch(() => undefined)) === undefined);
      expect(await refusalOf(caller.revision())).toEqual(refused.invalidToken);
    },
  },
  {
    name: 'of an older revision of the auth store is refused for keys and watches, also to root',
    since: '3.6',
    run: async (t) => {
      const old = await newRoot(t);
      const watch = old.watchStream();
      const { watchId } = await watch.create({ key: t.key('a') });
      const name = nameIn(t, 'ann');
      t.cleanUp(async () => {
        await (await newRoot(t)).auth.userDelete({ name });
      });
      await old.auth.userAdd({ name, password: name });
      const calls = [old.get('a'), old.put('a'), old.delete('a'), old.kv.txn({})];
      expect(await Promise.all(calls.map(refusalOf))).toEqual(calls.map(() => refused.oldAuthRevision));
      expect(await watch.create({ key: t.key('a') })).toMatchObject({
        canceled: true,
        cancelReason: 'rpc error: code = InvalidArgument desc = etcdserver: revision of auth store is old',
      });
      const root = await newRoot(t);
      await root.put('a', '1');
      expect(await watch.events(watchId, 1)).toHaveLength(1);
    },
  },
];

export const authTokens: CaseGroup = { name: 'a token', server: authOn, asRoot: true, cases: metadata };
export const authTokenLife: CaseGroup = { name: 'a simple token', server: shortLived, asRoot: true, cases: lives };
export const authJwt: CaseGroup = { name: 'a signed token', server: signed, asRoot: true, cases: jwt };
