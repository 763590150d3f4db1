import { expect } from 'vitest';
import { Code, refusalOf } from '../client/refusal.ts';
import { authOn, nameIn, permit, READWRITE, userWith, WRITE } from './accounts.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';

const denied = { code: Code.unknown, details: 'etcdserver: permission denied' };

/** Root holds the lock 'a', and the keys of `a/` may be read and written by the returned user. */
async function heldLock(t: CaseContext): Promise<{ ann: CaseContext; key: Uint8Array<ArrayBuffer> }> {
  const { key } = await t.lock.lock({ name: t.key('a'), lease: await t.grant() });
  return { ann: await userWith(t, 'ann', permit(t, READWRITE, 'a/', 'a0')), key: Uint8Array.from(key) };
}

async function untilQueued(t: CaseContext, keys: number): Promise<void> {
  await t.until(`${keys} keys`, async () => (await t.kv.range(t.all('a/'))).count === BigInt(keys));
}

const cases: Case[] = [
  {
    name: 'a lock passes to a user who may read and write its keys',
    run: async (t) => {
      const { ann, key } = await heldLock(t);
      const waiter = ann.lock.lock({ name: ann.key('a'), lease: await ann.grant() });
      await untilQueued(t, 2);
      await t.lock.unlock({ key });
      await ann.lock.unlock({ key: Uint8Array.from((await waiter).key) });
    },
  },
  {
    name: 'a lock is refused, without a key, to a user who may write its keys and not read them',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, WRITE, 'a/', 'a0'));
      expect(await refusalOf(ann.lock.lock({ name: ann.key('a'), lease: await ann.grant() }))).toEqual(denied);
      const campaign = ann.election.campaign({ name: ann.key('a'), lease: await ann.grant() });
      expect(await refusalOf(campaign)).toEqual(denied);
      await untilQueued(t, 0);
    },
  },
  {
    name: 'a lock is refused with a lease on whose other keys the user may not write',
    since: '3.6',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READWRITE, 'a/', 'a0'));
      const lease = await t.grant();
      await t.put('z', '', lease);
      expect(await refusalOf(ann.lock.lock({ name: ann.key('a'), lease }))).toEqual(denied);
      expect(await refusalOf(ann.election.campaign({ name: ann.key('a'), lease }))).toEqual(denied);
    },
  },
  {
    name: 'a waiter for a lock is refused once its user has lost the permission',
    run: async (t) => {
      const { ann, key } = await heldLock(t);
      const waiter = refusalOf(ann.lock.lock({ name: ann.key('a'), lease: await ann.grant() }));
      await untilQueued(t, 2);
      const role = nameIn(t, 'ann');
      await t.auth.roleRevokePermission({ role, key: t.key('a/'), rangeEnd: t.key('a0') });
      await t.lock.unlock({ key });
      // In etcd, if the waiter has not read the queue yet, the token is then of a past auth revision.
      const why = expect.stringMatching(/permission denied$|revision of auth store is old$|invalid auth token$/);
      expect(await waiter).toEqual({ code: Code.unknown, details: why });
    },
  },
  {
    name: 'a waiter whose user has a new password still gets the lock',
    run: async (t) => {
      const { ann, key } = await heldLock(t);
      const waiter = ann.lock.lock({ name: ann.key('a'), lease: await ann.grant() });
      await untilQueued(t, 2);
      await t.auth.userChangePassword({ name: nameIn(t, 'ann'), password: 'other' });
      await t.lock.unlock({ key });
      await waiter;
    },
    tenureOnly: 'etcd asks for the token again, which is not valid any more',
  },
  {
    name: 'a waiter whose client has gone leaves no key',
    tenureOnly: 'etcd deletes the key without the identity of the client, and is refused',
    run: async (t) => {
      const { ann } = await heldLock(t);
      const options = { deadlineMs: 500 };
      const waiter = ann.lock.lock({ name: ann.key('a'), lease: await ann.grant() }, options);
      await expect(waiter).rejects.toThrow(/Deadline exceeded|cancel/i);
      await untilQueued(t, 1);
    },
  },
];

export const authQueues: CaseGroup = { name: 'Lock and Election with auth', server: authOn, asRoot: true, cases };
