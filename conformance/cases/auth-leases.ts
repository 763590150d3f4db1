import { expect } from 'vitest';
import { refusalOf } from '../client/refusal.ts';
import { logIn, nameIn, permit, authOn, READ, READWRITE, userWith, WRITE } from './accounts.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';
import { op } from './txn-parts.ts';

const { permissionDenied } = refused;
const unknownLease = 0x7e57n;

const cases: Case[] = [
  {
    name: 'are granted to every user, and to no caller without a valid token',
    since: '3.6',
    run: async (t) => {
      const ann = await userWith(t, 'ann');
      const ID = await ann.grant();
      expect(await ann.ttlOf(ID)).toBeGreaterThan(0n);
      expect(await refusalOf(ann.lease.leaseGrant({ TTL: 60n, ID }))).toEqual(refused.leaseExists);
      for (const request of [{ TTL: 60n }, { TTL: 60n, ID }, { TTL: 2n ** 62n }]) {
        expect(await refusalOf(t.as({}).lease.leaseGrant(request))).toEqual(refused.noUser);
        const invalid = t.as({ token: 'nonsense' }).lease.leaseGrant(request);
        expect(await refusalOf(invalid)).toEqual(refused.invalidToken);
      }
    },
  },
  {
    name: 'take a key from those who may write all keys that the lease has',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, WRITE, 'k', 'l'));
      const lease = await t.grant();
      await ann.put('k1', '', lease);
      await t.put('k2', '', lease);
      await ann.put('k3', '', lease);
      await t.put('z', '', lease);
      expect(await refusalOf(ann.put('k4', '', lease))).toEqual(permissionDenied);
      await t.delete('z');
      await ann.put('k4', '', lease);
      expect(await refusalOf(ann.put('k4', '', unknownLease))).toEqual(refused.leaseNotFound);
      expect(await refusalOf(ann.put('z', '', unknownLease))).toEqual(permissionDenied);
    },
  },
  {
    name: 'take a key in a transaction from those who may write all keys that the lease has',
    since: '3.6',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, WRITE, 'k', 'l'));
      const lease = await t.grant();
      await t.put('z', '', lease);
      const put = op.put({ key: t.key('k'), lease });
      for (const txn of [{ success: [put] }, { failure: [put] }, { success: [op.txn({ success: [put] })] }]) {
        expect(await refusalOf(ann.kv.txn(txn))).toEqual(permissionDenied);
      }
      const unknown = op.put({ key: t.key('k'), lease: unknownLease });
      expect(await refusalOf(ann.kv.txn({ success: [unknown] }))).toEqual(refused.leaseNotFound);
    },
  },
  {
    name: 'are revoked by those who may write all their keys',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, WRITE, 'k', 'l'));
      const [own, shared, empty] = [await t.grant(), await t.grant(), await t.grant()];
      await t.put('k1', '', own);
      await t.put('k2', '', shared);
      await t.put('z', '', shared);
      await ann.lease.leaseRevoke({ ID: own });
      expect(await t.get('k1')).toBeUndefined();
      await ann.lease.leaseRevoke({ ID: empty });
      expect(await refusalOf(ann.lease.leaseRevoke({ ID: shared }))).toEqual(permissionDenied);
      expect(await refusalOf(ann.lease.leaseRevoke({ ID: own }))).toEqual(refused.leaseNotFound);
      expect(await t.get('k2')).toBeDefined();
      const reader = await userWith(t, 'reader', permit(t, READ, 'k', 'l'));
      const read = await t.grant();
      await t.put('k1', '', read);
      expect(await refusalOf(reader.lease.leaseRevoke({ ID: read }))).toEqual(permissionDenied);
    },
  },
  {
    name: 'are renewed by those who may write all their keys; a refusal ends the stream',
    since: '3.6',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, WRITE, 'k', 'l'));
      const reader = await userWith(t, 'reader', permit(t, READ, 'k', 'l'));
      const [own, foreign, empty] = [await t.grant(600n), await t.grant(), await t.grant()];
      await t.put('k', '', own);
      await t.put('z', '', foreign);
      const renewals = ann.keepAliveStream();
      expect(await renewals.renew(own)).toMatchObject({ TTL: 600n });
      expect(await renewals.renew(unknownLease)).toMatchObject({ TTL: 0n });
      renewals.send(foreign);
      expect(await renewals.ended).toEqual(permissionDenied);
      const others = reader.keepAliveStream();
      expect(await others.renew(empty)).toMatchObject({ TTL: 600n });
      others.send(own);
      expect(await others.ended).toEqual(permissionDenied);
    },
  },
  {
    name: 'are renewed with a valid token only, known or not',
    since: '3.6',
    run: async (t) => {
      const lease = await t.grant();
      for (const id of [lease, unknownLease]) {
        const anonymous = t.as({}).keepAliveStream();
        anonymous.send(id);
        expect(await anonymous.ended).toEqual(refused.noUser);
        const invalid = t.as({ token: 'nonsense' }).keepAliveStream();
        invalid.send(id);
        expect(await invalid.ended).toEqual(refused.invalidToken);
      }
    },
  },
  {
    name: 'are checked at each renewal: a permission, a token that ends meanwhile',
    since: '3.6',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READWRITE, 'k', 'l'));
      const bob = await userWith(t, 'bob', permit(t, READWRITE, 'k', 'l'));
      const lease = await ann.grant();
      await ann.put('k', '', lease);
      const [first, second] = [ann.keepAliveStream(), bob.keepAliveStream()];
      for (const stream of [first, second]) await stream.renew(lease);
      await t.auth.roleRevokePermission({ role: nameIn(t, 'ann'), ...t.all('k') });
      first.send(lease);
      expect(await first.ended).toEqual(permissionDenied);
      await second.renew(lease);
      await t.auth.userChangePassword({ name: nameIn(t, 'bob'), password: 'other' });
      second.send(lease);
      expect(await second.ended).toEqual(refused.invalidToken);
    },
  },
  {
    name: 'show their time to every user, and their keys to those who may read all of them',
    since: '3.6',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READ, 'k', 'l'));
      const writer = await userWith(t, 'writer', permit(t, WRITE, 'k', 'l'));
      const [own, shared] = [await t.grant(), await t.grant()];
      await t.put('k1', '', own);
      await t.put('k2', '', shared);
      await t.put('z', '', shared);
      const { keys } = await ann.lease.leaseTimeToLive({ ID: own, keys: true });
      expect(keys.map((key) => t.nameOf(key))).toEqual(['k1']);
      for (const [caller, ID] of [
        [ann, shared],
        [writer, own],
      ] as const) {
        expect(await refusalOf(caller.lease.leaseTimeToLive({ ID, keys: true }))).toEqual(permissionDenied);
        expect(await caller.ttlOf(ID)).toBeGreaterThan(0n);
      }
      expect(await ann.lease.leaseTimeToLive({ ID: unknownLease, keys: true })).toMatchObject({ TTL: -1n });
      expect(await refusalOf(t.as({}).ttlOf(unknownLease))).toEqual(refused.noUser);
      expect(await refusalOf(t.as({ token: 'nonsense' }).ttlOf(own))).toEqual(refused.invalidToken);
    },
  },
  {
    name: 'are listed for those who may read all keys of all of them',
    since: '3.6',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READ, 'k', 'l'));
      const [own, foreign] = [await t.grant(), await t.grant()];
      const listed = async (): Promise<bigint[]> => (await ann.lease.leaseLeases({})).leases.map(({ ID }) => ID);
      await t.put('k', '', own);
      expect(new Set(await listed())).toEqual(new Set([own, foreign]));
      await t.put('z', '', foreign);
      expect(await refusalOf(listed())).toEqual(permissionDenied);
      await t.lease.leaseRevoke({ ID: foreign });
      expect(await listed()).toEqual([own]);
      expect(await refusalOf(t.as({}).lease.leaseLeases({}))).toEqual(refused.noUser);
    },
  },
  {
    name: 'expire also when their user is deleted',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, WRITE, 'k', 'l'));
      const { ID } = await ann.lease.leaseGrant({ TTL: 1n });
      await ann.put('k', '', ID);
      await t.put('z', '', ID);
      await t.auth.userDelete({ name: nameIn(t, 'ann') });
      await t.until('the keys are gone', async () => (await t.kv.range(t.all())).count === 0n);
      expect(await t.ttlOf(ID)).toBe(-1n);
    },
  },
  {
    name: 'belong to no user: another one renews and revokes them',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READWRITE, 'k', 'l'));
      const bob = await userWith(t, 'bob', permit(t, READWRITE, 'k', 'l'));
      const { ID } = await ann.lease.leaseGrant({ TTL: 600n });
      await ann.put('k', '', ID);
      expect(await bob.keepAliveStream().renew(ID)).toMatchObject({ TTL: 600n });
      const again = t.as({ token: await logIn(t, nameIn(t, 'bob')) });
      await again.lease.leaseRevoke({ ID });
      expect(await ann.get('k')).toBeUndefined();
    },
  },
];

export const authLeases: CaseGroup = { name: 'leases with auth', server: authOn, asRoot: true, cases };
