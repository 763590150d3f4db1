import { expect } from 'vitest';
import { noWatchId } from '../client/watch-stream.ts';
import { nameIn, permit, permitExactly, authOn, READ, READWRITE, userWith, WRITE } from './accounts.ts';
import { bytes } from './bytes.ts';
import { revisionOf } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';

const denied = 'rpc error: code = PermissionDenied desc = etcdserver: permission denied';
const noUser = 'rpc error: code = InvalidArgument desc = etcdserver: user name is empty';
const invalidToken = 'rpc error: code = Unauthenticated desc = etcdserver: invalid auth token';
const emptyRange = 'mvcc: watcher range is empty';

/** The one reply of a watch that is refused. */
const refusedFor = (cancelReason: string): Record<string, unknown> => ({
  watchId: noWatchId,
  created: true,
  canceled: true,
  compactRevision: 0n,
  events: [],
  cancelReason,
});

const cases: Case[] = [
  {
    name: 'needs READ on the whole range, also with previous values and from the past',
    since: '3.6',
    run: async (t) => {
      const base = await t.put('k1', '1');
      await t.put('k1', '2');
      const reader = await userWith(t, 'reader', permit(t, READ, 'k', 'l'));
      const watch = reader.watchStream();
      const { watchId } = await watch.create({ ...t.all('k'), prevKv: true, startRevision: base });
      const events = await watch.events(watchId, 2);
      expect(t.events(events, base)).toEqual(['PUT k1=1 +0', 'PUT k1=2 +1']);
      expect(events[1]?.prevKv).toMatchObject({ version: 1n, modRevision: base });
      for (const range of [
        { key: t.key('z') },
        { key: t.key('k'), rangeEnd: t.key('m') },
        { key: t.key('k'), rangeEnd: bytes('\0') },
        { key: bytes('\0'), rangeEnd: bytes('\0') },
        {},
      ]) {
        expect(await watch.create(range)).toMatchObject(refusedFor(denied));
      }
      const writer = await userWith(t, 'writer', permit(t, WRITE, 'k', 'l'));
      expect(await writer.watchStream().create({ key: t.key('k') })).toMatchObject(refusedFor(denied));
    },
  },
  {
    name: 'is refused in a reply, with the revision of the store; the stream and its other watches go on',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READ, 'k', 'l'));
      const watch = ann.watchStream();
      const { watchId } = await watch.create({ key: t.key('k') });
      const revision = await t.revision();
      const reply = await watch.create({ key: t.key('z'), watchId: 7n });
      expect(reply).toMatchObject(refusedFor(denied));
      expect(revisionOf(reply)).toBe(revision);
      expect(await watch.create({ key: t.key('k'), watchId: 7n })).toMatchObject({ watchId: 7n, canceled: false });
      await t.put('k', '1');
      expect(await watch.events(watchId, 1)).toHaveLength(1);
      expect(await watch.events(7n, 1)).toHaveLength(1);
      await watch.progress();
      expect(await watch.cancel(watchId)).toMatchObject({ cancelReason: '' });
    },
  },
  {
    name: 'is refused in a reply without a token, and with an invalid one',
    run: async (t) => {
      for (const [metadata, reason] of [
        [{}, noUser],
        [{ token: 'nonsense' }, invalidToken],
      ] as const) {
        const watch = t.as(metadata).watchStream();
        for (const range of [{ key: t.key('a') }, { key: t.key('b'), rangeEnd: t.key('a') }, { startRevision: 1n }]) {
          expect(await watch.create(range)).toMatchObject(refusedFor(reason));
        }
      }
    },
  },
  {
    name: 'of an empty range is refused as such to those who may read its key',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READ, 'k', 'l'));
      const watch = ann.watchStream();
      for (const end of ['k', 'a']) {
        const reply = await watch.create({ key: t.key('k'), rangeEnd: t.key(end) });
        expect(reply).toMatchObject(refusedFor(emptyRange));
      }
      const foreign = await watch.create({ key: t.key('z'), rangeEnd: t.key('a') });
      expect(foreign).toMatchObject(refusedFor(denied));
    },
  },
  {
    name: 'without a key is one of the key 0 and what follows it',
    since: '3.6',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permitExactly(READ, '\0'));
      const watch = ann.watchStream();
      expect(await watch.create({})).toMatchObject({ created: true, canceled: false });
      expect(await watch.create({ rangeEnd: bytes('\0') })).toMatchObject(refusedFor(denied));
      const bob = await userWith(t, 'bob', permitExactly(READ, '\0', '\0'));
      expect(await bob.watchStream().create({ rangeEnd: bytes('\0') })).toMatchObject({ canceled: false });
    },
  },
  {
    name: 'goes on when the permission is taken away, and a new one is refused',
    stricter: 'it ends, decision 030',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READWRITE, 'k', 'l'));
      const watch = ann.watchStream();
      const { watchId } = await watch.create(t.all('k'));
      await t.auth.roleRevokePermission({ role: nameIn(t, 'ann'), ...t.all('k') });
      await t.put('k1', '1');
      expect(await watch.events(watchId, 1)).toHaveLength(1);
      expect(await watch.create(t.all('k'))).toMatchObject(refusedFor(denied));
      await watch.progress();
    },
  },
  {
    name: 'goes on when the password changes and when the user is deleted, and a new one is refused',
    stricter: 'it ends with its user, decision 030',
    run: async (t) => {
      const ann = await userWith(t, 'ann', permit(t, READ, 'k', 'l'));
      const watch = ann.watchStream();
      const { watchId } = await watch.create(t.all('k'));
      await t.auth.userChangePassword({ name: nameIn(t, 'ann'), password: 'other' });
      await t.put('k1', '1');
      expect(await watch.events(watchId, 1)).toHaveLength(1);
      expect(await watch.create(t.all('k'))).toMatchObject(refusedFor(invalidToken));
      await t.auth.userDelete({ name: nameIn(t, 'ann') });
      await t.put('k1', '2');
      expect(await watch.events(watchId, 1)).toHaveLength(1);
      await watch.progress();
    },
  },
  {
    name: 'that does not exist is cancelled without a reply, with no token',
    run: async (t) => {
      const watch = t.as({}).watchStream();
      for (const watchId of [0n, 9n, noWatchId]) watch.send({ case: 'cancelRequest', value: { watchId } });
      expect(await watch.create({ key: t.key('a') })).toMatchObject(refusedFor(noUser));
      expect(watch.arrived(noWatchId)).toEqual([]);
    },
  },
];

export const authWatch: CaseGroup = { name: 'a watch with auth', server: authOn, asRoot: true, cases };
