import { expect } from 'vitest';
import { noWatchId } from '../client/watch-stream.ts';
import { bytes } from './bytes.ts';
import { revisionOf } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';

const ids: Case[] = [
  {
    name: "says that a watch was created, with the store's revision",
    run: async (t) => {
      const revision = await t.put('a');
      const reply = await t.watchStream().create({ key: t.key('a') });
      expect(reply).toMatchObject({ created: true, canceled: false, watchId: 0n, compactRevision: 0n, events: [] });
      expect(reply.cancelReason).toBe('');
      expect(revisionOf(reply)).toBe(revision);
      expect(reply.header?.memberId).not.toBe(0n);
    },
  },
  {
    name: 'numbers the watches of a stream from 0',
    run: async (t) => {
      const [first, second] = [t.watchStream(), t.watchStream()];
      for (const id of [0n, 1n, 2n]) expect((await first.create({ key: t.key('a') })).watchId).toBe(id);
      expect((await second.create({ key: t.key('a') })).watchId).toBe(0n);
    },
  },
  {
    name: 'does not use a number twice, also when its watch was cancelled',
    run: async (t) => {
      const watch = t.watchStream();
      await watch.create({ key: t.key('a') });
      await watch.create({ key: t.key('a') });
      await watch.cancel(1n);
      expect((await watch.create({ key: t.key('a') })).watchId).toBe(2n);
    },
  },
  {
    name: 'accepts an id chosen by the client, and skips it',
    run: async (t) => {
      const watch = t.watchStream();
      expect((await watch.create({ key: t.key('a'), watchId: 1n })).watchId).toBe(1n);
      expect((await watch.create({ key: t.key('a'), watchId: 2n ** 62n })).watchId).toBe(2n ** 62n);
      expect((await watch.create({ key: t.key('a') })).watchId).toBe(0n);
      expect((await watch.create({ key: t.key('a') })).watchId).toBe(2n);
    },
  },
  {
    name: 'refuses an id that is in use, and leaves its watch alone',
    run: async (t) => {
      const watch = t.watchStream();
      await watch.create({ key: t.key('a'), watchId: 5n });
      expect(await watch.create({ key: t.key('b'), watchId: 5n })).toMatchObject({
        created: true,
        canceled: true,
        watchId: noWatchId,
        cancelReason: 'mvcc: duplicate watch ID provided on the WatchStream',
      });
      const base = await t.put('a', '1');
      expect(t.events(await watch.events(5n, 1), base)).toEqual(['PUT a=1 +0']);
    },
  },
  {
    name: 'accepts the id of a cancelled watch',
    run: async (t) => {
      const watch = t.watchStream();
      await watch.create({ key: t.key('a'), watchId: 5n });
      await watch.cancel(5n);
      expect(await watch.create({ key: t.key('b'), watchId: 5n })).toMatchObject({ created: true, canceled: false });
      const base = await t.put('b', '1');
      expect(t.events(await watch.events(5n, 1), base)).toEqual(['PUT b=1 +0']);
    },
  },
];

const ranges: Case[] = [
  {
    name: 'refuses a range that is empty',
    run: async (t) => {
      const watch = t.watchStream();
      for (const rangeEnd of [t.key('b'), t.key('a')]) {
        expect(await watch.create({ key: t.key('b'), rangeEnd })).toMatchObject({
          created: true,
          canceled: true,
          watchId: noWatchId,
          cancelReason: 'mvcc: watcher range is empty',
        });
      }
      expect(await watch.create({ key: t.key('b') })).toMatchObject({ created: true, canceled: false });
    },
  },
  {
    name: 'watches one key, a range, and a prefix',
    run: async (t) => {
      const watch = t.watchStream();
      const one = (await watch.create({ key: t.key('b') })).watchId;
      const range = (await watch.create({ key: t.key('b'), rangeEnd: t.key('c') })).watchId;
      const prefix = (await watch.create(t.all('b'))).watchId;
      const base = await t.revision();
      for (const name of ['a', 'b', 'ba', 'bb', 'c']) await t.put(name);
      expect(t.events(await watch.events(one, 1), base)).toEqual(['PUT b= +2']);
      for (const id of [range, prefix]) {
        expect(t.events(await watch.events(id, 3), base)).toEqual(['PUT b= +2', 'PUT ba= +3', 'PUT bb= +4']);
      }
      await watch.progress();
      expect(watch.arrived(one)).toEqual([]);
      expect(watch.arrived(range)).toEqual([]);
    },
  },
  {
    name: 'watches all keys from one on',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('b'), rangeEnd: bytes('\0') });
      const base = await t.revision();
      for (const name of ['a', 'b', 'c']) await t.put(name);
      expect(t.events(await watch.events(watchId, 2), base)).toEqual(['PUT b= +2', 'PUT c= +3']);
    },
  },
  {
    name: 'watches the whole key space',
    run: async (t) => {
      const watch = t.watchStream();
      const wholes = [
        (await watch.create({ key: bytes('\0'), rangeEnd: bytes('\0') })).watchId,
        (await watch.create({ key: bytes(''), rangeEnd: bytes('\0') })).watchId,
      ];
      const base = await t.revision();
      await t.put('a', '1');
      await t.delete('a');
      for (const id of wholes) {
        expect(t.events(await watch.events(id, 2), base)).toEqual(['PUT a=1 +1', 'DELETE a +2']);
      }
    },
  },
  {
    name: 'treats an empty key without a range end as the key of one zero byte',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId, canceled } = await watch.create({ key: bytes('') });
      expect(canceled).toBe(false);
      await t.put('a');
      const base = revisionOf(await t.kv.put({ key: bytes('\0'), value: bytes('1') }));
      t.cleanUp(() => t.kv.deleteRange({ key: bytes('\0') }));
      const [event] = await watch.events(watchId, 1);
      expect(event?.kv?.modRevision).toBe(base);
    },
  },
];

const requests: Case[] = [
  {
    name: 'ignores a request that asks for nothing',
    run: async (t) => {
      const watch = t.watchStream();
      watch.send(undefined);
      expect((await watch.create({ key: t.key('a') })).created).toBe(true);
    },
  },
  {
    name: 'ignores filters that do not exist',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId, canceled } = await watch.create({ key: t.key('a'), filters: [7 as 0] });
      expect(canceled).toBe(false);
      const base = await t.put('a', '1');
      expect(t.events(await watch.events(watchId, 1), base)).toEqual(['PUT a=1 +0']);
    },
  },
  {
    name: 'sends on after the client has nothing more to ask for',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a') });
      watch.halfClose();
      const base = await t.put('a', '1');
      expect(t.events(await watch.events(watchId, 1), base)).toEqual(['PUT a=1 +0']);
    },
  },
];

export const watchCreate: CaseGroup = { name: 'Watch, creating', cases: [...ids, ...ranges, ...requests] };
