import { expect } from 'vitest';
import { noWatchId } from '../client/watch-stream.ts';
import { bytes } from './bytes.ts';
import { revisionOf } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { op } from './txn-parts.ts';

const past: Case[] = [
  {
    name: 'begins with the next revision when no start is given',
    run: async (t) => {
      await t.put('a', 'old');
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a'), startRevision: 0n });
      const base = await t.put('a', 'new');
      expect(t.events(await watch.events(watchId, 1), base)).toEqual(['PUT a=new +0']);
    },
  },
  {
    name: 'begins at a past revision, inclusive, and continues with the later ones',
    run: async (t) => {
      await t.put('a', '0');
      const base = await t.put('a', '1');
      await t.put('other', '1');
      await t.delete('a');
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a'), startRevision: base });
      await t.put('a', '2');
      expect(t.events(await watch.events(watchId, 3), base)).toEqual(['PUT a=1 +0', 'DELETE a +2', 'PUT a=2 +3']);
    },
  },
  {
    name: 'sends the creation before the events of the past',
    run: async (t) => {
      const base = await t.put('a', '1');
      const watch = t.watchStream();
      watch.send({ case: 'createRequest', value: { key: t.key('a'), startRevision: base } });
      expect(await watch.next(0n)).toMatchObject({ created: true, events: [] });
      expect(t.events((await watch.next(0n)).events, base)).toEqual(['PUT a=1 +0']);
    },
  },
  {
    name: 'sends every watch of a stream its own past events',
    run: async (t) => {
      const base = await t.put('a', '0');
      for (const value of ['1', '2', '3']) await t.put('a', value);
      const watch = t.watchStream();
      for (const start of [3n, 1n, 2n, 0n]) await watch.create({ key: t.key('a'), startRevision: base + start });
      await t.put('a', '4');
      for (const [id, start] of [
        [0n, 3],
        [1n, 1],
        [2n, 2],
        [3n, 0],
      ] as const) {
        const expected = [0, 1, 2, 3, 4].slice(start).map((value) => `PUT a=${value} +${value}`);
        expect(t.events(await watch.events(id, expected.length), base)).toEqual(expected);
      }
    },
  },
  {
    name: 'sends a long history completely and in order, never splitting a revision over two replies',
    run: async (t) => {
      const revisions = 300;
      const base = await t.put('start');
      for (let index = 1; index <= revisions; index += 1) {
        const put = (name: string) =>
          ({ request: { case: 'requestPut', value: { key: t.key(name), value: t.key(`${index}`) } } }) as const;
        await t.kv.txn({ success: [put('x'), put('y')] });
      }
      const watch = t.watchStream();
      const { watchId } = await watch.create({ ...t.all(), startRevision: base + 1n });
      const replies = await watch.replies(watchId, 2 * revisions);
      const seen = replies.flatMap(({ events }) => events.map(({ kv }) => Number((kv?.modRevision ?? 0n) - base)));
      expect(seen).toEqual(Array.from({ length: 2 * revisions }, (_, index) => 1 + Math.floor(index / 2)));
      let last = 0n;
      for (const reply of replies) {
        expect(reply.events[0]?.kv?.modRevision).toBeGreaterThan(last);
        last = reply.events.at(-1)?.kv?.modRevision ?? 0n;
        expect(revisionOf(reply)).toBeGreaterThanOrEqual(last);
      }
    },
    timeoutMs: 30_000,
  },
  {
    name: 'splits a long history into several replies, so that a client may resume after any of them',
    run: async (t) => {
      // More than either server puts into one reply: etcd ends it after 1000 revisions, Tenure after half a MiB.
      const [revisions, value] = [1_200, 'v'.repeat(600)];
      const base = await t.put('start');
      await Promise.all(
        Array.from({ length: revisions }, () =>
          t.kv.txn({ success: ['x', 'y'].map((name) => op.put({ key: t.key(name), value: bytes(value) })) }),
        ),
      );
      const past = { ...t.all(), startRevision: base + 1n };
      const watch = t.watchStream();
      const replies = await watch.replies((await watch.create(past)).watchId, 2 * revisions);
      expect(replies.length).toBeGreaterThan(1);
      expect(replies.every(({ fragment }) => !fragment)).toBe(true);
      const all = t.events(
        replies.flatMap(({ events }) => events),
        base,
      );
      // Like Go's client when its stream breaks: it resumes after the last event that it received.
      for (const broken of [replies.slice(0, 1), replies.slice(0, -1)]) {
        const had = broken.flatMap(({ events }) => events);
        const startRevision = (had.at(-1)?.kv?.modRevision ?? 0n) + 1n;
        const { watchId } = await watch.create({ ...past, startRevision });
        const rest = await watch.events(watchId, 2 * revisions - had.length);
        expect(t.events([...had, ...rest], base)).toEqual(all);
      }
      expect(new Set(all.map((event) => event.slice(event.lastIndexOf('+')))).size).toBe(revisions);
    },
  },
];

const future: Case[] = [
  {
    name: 'waits for a future revision and sends nothing from before it',
    run: async (t) => {
      const base = await t.revision();
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a'), startRevision: base + 3n });
      for (const value of ['1', '2', '3', '4']) await t.put('a', value);
      expect(t.events(await watch.events(watchId, 2), base)).toEqual(['PUT a=3 +3', 'PUT a=4 +4']);
    },
  },
  {
    name: 'accepts the largest revision as a start that is never reached',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a'), startRevision: 2n ** 63n - 1n });
      const now = (await watch.create({ key: t.key('a') })).watchId;
      await t.put('a', '1');
      await watch.events(now, 1);
      expect(watch.arrived(watchId)).toEqual([]);
    },
  },
];

const compacted: Case[] = [
  {
    name: 'cancels a watch that begins before the compacted revision, and names that revision',
    run: async (t) => {
      const base = await t.put('a', '1');
      const compactRevision = await t.put('a', '2');
      await t.put('a', '3');
      await t.kv.compact({ revision: compactRevision });
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a'), startRevision: base });
      expect(await watch.canceled(watchId)).toMatchObject({
        created: false,
        canceled: true,
        compactRevision,
        events: [],
        cancelReason: '',
      });
      expect((await watch.create({ key: t.key('a') })).created).toBe(true);
    },
  },
  {
    name: 'begins at the compacted revision itself',
    run: async (t) => {
      const base = await t.put('a', '1');
      await t.put('a', '2');
      await t.kv.compact({ revision: base });
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a'), startRevision: base });
      expect(t.events(await watch.events(watchId, 2), base)).toEqual(['PUT a=1 +0', 'PUT a=2 +1']);
    },
  },
  {
    name: 'does not affect a watch that has seen the compacted revisions',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a') });
      const base = await t.put('a', '1');
      await watch.events(watchId, 1);
      await t.kv.compact({ revision: base });
      await t.put('a', '2');
      expect(t.events(await watch.events(watchId, 1), base)).toEqual(['PUT a=2 +1']);
    },
  },
  {
    name: 'refuses a negative start',
    since: '3.6',
    run: async (t) => {
      for (const startRevision of [-1n, -(2n ** 63n)]) {
        const reply = await t.watchStream().create({ key: t.key('a'), startRevision });
        expect(reply).toMatchObject({ created: true, canceled: true, watchId: noWatchId, compactRevision: 0n });
        expect(reply.cancelReason).toBe('etcdserver: mvcc: required revision has been compacted');
      }
    },
  },
];

export const watchStart: CaseGroup = { name: 'Watch, where it begins', cases: [...past, ...future, ...compacted] };
