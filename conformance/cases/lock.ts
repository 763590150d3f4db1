import { expect } from 'vitest';
import type { v3lockpb } from '@tenure/protocol';
import { Code, refusalOf } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import { type CaseContext, revisionOf } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';

/** As every refusal of these services: etcd sends the texts of its errors without their codes. */
const unknownCode = (details: string): { code: number; details: string } => ({ code: Code.unknown, details });
const leaseNotFound = unknownCode('etcdserver: requested lease not found');
const sessionExpired = unknownCode('mutex: session is expired');

const unknownLease = 0x7e57n;
/** As the client reports its own deadline, or etcd the end of the call by it. */
const endedByClient = /Deadline exceeded|cancel/i;

function lock(t: CaseContext, name: string, lease: bigint, deadlineMs?: number): Promise<v3lockpb.LockResponse> {
  return t.lock.lock({ name: t.key(name), lease }, deadlineMs === undefined ? {} : { deadlineMs });
}

/** The lock is held or waited for by so many keys. */
async function untilQueued(t: CaseContext, name: string, keys: number): Promise<void> {
  await t.until(`${keys} keys of ${name}`, async () => (await t.kv.range(t.all(`${name}/`))).count === BigInt(keys));
}

const held: Case[] = [
  {
    name: 'is held with a key of its name and the lease in hexadecimal, at the revision of that key',
    run: async (t) => {
      const lease = await t.grant(600n, 0x00ab_cdef_0123n);
      const before = await t.revision();
      const reply = await lock(t, 'a', lease);
      expect(t.nameOf(reply.key)).toBe('a/abcdef0123');
      expect(revisionOf(reply)).toBe(before + 1n);
      expect(await t.get('a/abcdef0123')).toMatchObject({ createRevision: before + 1n, version: 1n, lease });
      expect((await t.get('a/abcdef0123'))?.value).toHaveLength(0);
      expect(await t.revision()).toBe(before + 1n);
    },
  },
  {
    name: 'writes a negative lease id with a minus sign',
    run: async (t) => {
      const reply = await lock(t, 'a', await t.grant(600n, -0xabcn));
      expect(t.nameOf(reply.key)).toBe('a/-abc');
    },
  },
  {
    name: 'is held again by the same lease, without another revision',
    run: async (t) => {
      const lease = await t.grant();
      const first = await lock(t, 'a', lease);
      const other = await t.put('other');
      const again = await lock(t, 'a', lease);
      expect(again.key).toEqual(first.key);
      expect(revisionOf(again)).toBe(other);
      expect(await t.revision()).toBe(other);
    },
  },
  {
    name: 'is held by an empty name, with a key below a slash',
    run: async (t) => {
      const lease = await t.grant();
      const { key } = await t.lock.lock({ lease });
      t.cleanUp(() => t.lock.unlock({ key }).then(() => undefined));
      expect(Buffer.from(key).toString('latin1')).toBe(`/${lease.toString(16)}`);
    },
  },
  {
    name: 'grants a lease of 60 seconds to a request without one',
    run: async (t) => {
      const { key } = await lock(t, 'a', 0n);
      const [, hex] = t.nameOf(key).split('/');
      const lease = BigInt.asIntN(64, BigInt(`0x${hex}`));
      t.cleanUp(() => t.lease.leaseRevoke({ ID: lease }).then(() => undefined));
      const { grantedTTL, keys } = await t.lease.leaseTimeToLive({ ID: lease, keys: true });
      expect(grantedTTL).toBe(60n);
      expect(keys).toEqual([key]);
    },
  },
  {
    name: 'is refused to a lease that does not exist, and leaves no key',
    run: async (t) => {
      for (const lease of [unknownLease, -1n]) {
        expect(await refusalOf(lock(t, 'a', lease))).toEqual(leaseNotFound);
      }
      expect((await t.kv.range(t.all())).count).toBe(0n);
    },
  },
  {
    name: 'keeps locks of other names apart',
    run: async (t) => {
      const [first, second] = [await t.grant(), await t.grant()];
      await lock(t, 'a', first);
      await lock(t, 'ab', second);
      await lock(t, 'b', second);
    },
  },
];

const unlocked: Case[] = [
  {
    name: 'deletes the key at a revision of its own',
    run: async (t) => {
      const { key } = await lock(t, 'a', await t.grant());
      const before = await t.revision();
      expect(revisionOf(await t.lock.unlock({ key }))).toBe(before + 1n);
      expect((await t.kv.range(t.all())).count).toBe(0n);
    },
  },
  {
    name: 'changes nothing when there is no such key',
    run: async (t) => {
      const before = await t.put('other');
      expect(revisionOf(await t.lock.unlock({ key: t.key('a/1') }))).toBe(before);
      expect(await t.revision()).toBe(before);
    },
  },
  {
    name: 'deletes one key of any kind, and no range',
    run: async (t) => {
      await t.put('a');
      await t.put('a/1');
      await t.lock.unlock({ key: t.key('a') });
      expect(t.pairs((await t.kv.range(t.all())).kvs)).toEqual(['a/1=']);
    },
  },
  {
    name: 'is refused without a key',
    run: async (t) => {
      expect(await refusalOf(t.lock.unlock({}))).toEqual(unknownCode('etcdserver: key is not provided'));
    },
  },
];

const waiting: Case[] = [
  {
    name: 'waits until the holder has unlocked, and answers with the revision of that moment',
    run: async (t) => {
      const first = await lock(t, 'a', await t.grant());
      const second = lock(t, 'a', await t.grant());
      await untilQueued(t, 'a', 2);
      const { header } = await t.lock.unlock({ key: first.key });
      expect(revisionOf(await second)).toBe(header?.revision);
    },
  },
  {
    name: 'serves those who wait in the order of the revisions of their keys',
    run: async (t) => {
      const order: number[] = [];
      const { key } = await lock(t, 'a', await t.grant());
      const served: Promise<unknown>[] = [];
      for (let turn = 1; turn <= 5; turn += 1) {
        // Keys in the opposite order: only the revisions count.
        const lease = await t.grant(600n, BigInt(0xf000 - turn));
        const waiter = lock(t, 'a', lease).then(async (reply) => {
          order.push(turn);
          await t.lock.unlock({ key: reply.key });
        });
        served.push(waiter);
        await untilQueued(t, 'a', turn + 1);
      }
      expect(order).toEqual([]);
      await t.lock.unlock({ key });
      await Promise.all(served);
      expect(order).toEqual([1, 2, 3, 4, 5]);
    },
  },
  {
    name: 'waits for every older key below its name, also those of other clients',
    run: async (t) => {
      await t.put('a/z', 'by hand');
      await t.put('a/b/c', 'of a nested name');
      let isHeld = false;
      const waiter = lock(t, 'a', await t.grant()).then(() => (isHeld = true));
      await untilQueued(t, 'a', 3);
      await t.put('a/z', 'changed');
      await t.delete('a/b/c');
      await untilQueued(t, 'a', 2);
      expect(isHeld).toBe(false);
      await t.delete('a/z');
      await waiter;
    },
  },
  {
    name: 'does not wait for younger keys, also one that took the place of the one waited for',
    run: async (t) => {
      await t.put('a/z');
      const waiter = lock(t, 'a', await t.grant());
      await untilQueued(t, 'a', 2);
      await t.delete('a/z');
      await t.put('a/z');
      await waiter;
    },
  },
  {
    name: 'passes to the next when the lease of the holder ends',
    run: async (t) => {
      const holder = await t.grant();
      await lock(t, 'a', holder);
      const waiter = lock(t, 'a', await t.grant());
      await untilQueued(t, 'a', 2);
      await t.lease.leaseRevoke({ ID: holder });
      await waiter;
    },
  },
  {
    name: 'is refused as expired to a waiter whose lease has ended',
    since: '3.6',
    run: async (t) => {
      const { key } = await lock(t, 'a', await t.grant());
      const lease = await t.grant();
      const waiter = refusalOf(lock(t, 'a', lease));
      await untilQueued(t, 'a', 2);
      await t.lease.leaseRevoke({ ID: lease });
      await t.lock.unlock({ key });
      expect(await waiter).toEqual(sessionExpired);
    },
  },
  {
    name: 'is refused to a waiter when its lease ends, while another still holds',
    tenureOnly: 'etcd answers only when all older keys are gone',
    run: async (t) => {
      await lock(t, 'a', await t.grant());
      const lease = await t.grant();
      const waiter = refusalOf(lock(t, 'a', lease));
      await untilQueued(t, 'a', 2);
      await t.lease.leaseRevoke({ ID: lease });
      expect(await waiter).toEqual(sessionExpired);
    },
  },
  {
    name: 'takes the key of a waiter whose client has gone, and serves the next',
    run: async (t) => {
      const { key } = await lock(t, 'a', await t.grant());
      await expect(lock(t, 'a', await t.grant(), 500)).rejects.toThrow(endedByClient);
      await untilQueued(t, 'a', 1);
      const next = lock(t, 'a', await t.grant());
      await untilQueued(t, 'a', 2);
      await t.lock.unlock({ key });
      await next;
    },
  },
  {
    name: 'leaves the key of a holder whose client has gone',
    run: async (t) => {
      const lease = await t.grant();
      const other = t.as({});
      await lock(other, 'a', lease);
      other.client.close();
      await expect(lock(t, 'a', await t.grant(), 500)).rejects.toThrow(endedByClient);
      expect(await t.get(`a/${lease.toString(16)}`)).toMatchObject({ lease });
    },
  },
  {
    name: 'serves both calls of one lease that waits twice',
    run: async (t) => {
      const { key } = await lock(t, 'a', await t.grant());
      const lease = await t.grant();
      const waiters = [lock(t, 'a', lease), lock(t, 'a', lease)];
      await untilQueued(t, 'a', 2);
      await t.lock.unlock({ key });
      const [one, other] = await Promise.all(waiters);
      expect(one?.key).toEqual(other?.key);
      expect(t.nameOf(one?.key ?? bytes(''))).toBe(`a/${lease.toString(16)}`);
    },
  },
];

export const lockService: CaseGroup = { name: 'Lock', cases: [...held, ...unlocked, ...waiting] };
