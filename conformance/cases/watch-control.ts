import { expect } from 'vitest';
import { Code } from '../client/refusal.ts';
import { noWatchId, type WatchStream } from '../client/watch-stream.ts';
import { revisionOf, type CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';

const cancellation: Case[] = [
  {
    name: 'says that a watch was cancelled, and sends it nothing from then on',
    run: async (t) => {
      const watch = t.watchStream();
      const stays = (await watch.create(t.all())).watchId;
      const ends = (await watch.create(t.all())).watchId;
      await t.put('a', '1');
      await watch.events(ends, 1);
      const revision = await t.revision();
      const reply = await watch.cancel(ends);
      expect(reply).toMatchObject({
        created: false,
        canceled: true,
        compactRevision: 0n,
        events: [],
        cancelReason: '',
      });
      expect(revisionOf(reply)).toBe(revision);
      await t.put('a', '2');
      expect(await watch.events(stays, 2)).toHaveLength(2);
      await watch.progress();
      expect(watch.arrived(ends)).toEqual([]);
    },
  },
  {
    name: 'ignores the cancellation of a watch that does not exist, or no longer',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a') });
      await watch.cancel(watchId);
      for (const unknown of [watchId, 99n, -1n]) watch.send({ case: 'cancelRequest', value: { watchId: unknown } });
      expect((await watch.create({ key: t.key('a') })).created).toBe(true);
      for (const unknown of [watchId, 99n, noWatchId]) expect(watch.arrived(unknown)).toEqual([]);
    },
  },
  {
    name: 'does not touch a watch of another stream with the same id',
    run: async (t) => {
      const [first, second] = [t.watchStream(), t.watchStream()];
      await first.create({ key: t.key('a') });
      await second.create({ key: t.key('a') });
      await first.cancel(0n);
      await t.put('a', '1');
      expect(await second.events(0n, 1)).toHaveLength(1);
    },
  },
  {
    name: "ends with the client's cancellation of the call",
    run: async (t) => {
      const watch = t.watchStream();
      await watch.create({ key: t.key('a') });
      watch.close();
      expect((await watch.ended).code).toBe(Code.cancelled);
      expect(await t.put('a')).toBeGreaterThan(0n);
    },
  },
];

const progress: Case[] = [
  {
    name: "answers a question for progress for the whole stream, with the store's revision",
    run: async (t) => {
      const watch = t.watchStream();
      await watch.create({ key: t.key('a') });
      await watch.create({ key: t.key('b') });
      const revision = await t.put('unwatched');
      const reply = await watch.progress();
      expect(reply).toMatchObject({ watchId: noWatchId, created: false, canceled: false, events: [] });
      expect(revisionOf(reply)).toBe(revision);
    },
  },
  {
    name: 'answers only after the events up to that revision',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a') });
      for (let round = 0; round < 50; round += 1) {
        const revision = await t.put('a', `${round}`);
        expect(revisionOf(await watch.progress())).toBe(revision);
        expect(watch.arrived(watchId).flatMap(({ events }) => events)).toHaveLength(1);
      }
    },
  },
  {
    name: 'answers each of several questions',
    run: async (t) => {
      const watch = t.watchStream();
      await watch.create({ key: t.key('a') });
      for (let round = 0; round < 5; round += 1) expect((await watch.progress()).watchId).toBe(noWatchId);
    },
  },
  {
    name: 'answers for a watch of the past after its events',
    since: '3.6',
    run: async (t) => {
      const base = await t.put('a', '0');
      for (let index = 1; index < 200; index += 1) await t.put('a', `${index}`);
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a'), startRevision: base });
      // etcd drops a progress request that it cannot answer yet, so the client asks again.
      await t.until('the stream has answered', async () => {
        watch.send({ case: 'progressRequest', value: {} });
        return watch.arrived(noWatchId).length > 0;
      });
      expect(
        t.events(
          watch.arrived(watchId).flatMap(({ events }) => events),
          base,
        ),
      ).toHaveLength(200);
    },
  },
  {
    name: 'answers a question for progress with nothing while the stream has no watch',
    since: '3.6',
    run: async (t) => {
      const watch = t.watchStream();
      watch.send({ case: 'progressRequest', value: {} });
      await cancelledAgain(t, watch);
      watch.send({ case: 'progressRequest', value: {} });
      await nothingTold(t, watch);
      expect((await watch.progress()).watchId).toBe(noWatchId);
    },
  },
  {
    // A client that took an earlier revision as its position would resume before its start revision.
    name: 'answers with nothing while a watch of the stream starts in the future',
    since: '3.6',
    run: async (t) => {
      const watch = t.watchStream();
      await watch.create({ key: t.key('a') });
      const startRevision = (await t.revision()) + 3n;
      const { watchId } = await watch.create({ key: t.key('b'), startRevision });
      watch.send({ case: 'progressRequest', value: {} });
      await t.put('b', '1');
      watch.send({ case: 'progressRequest', value: {} });
      await nothingTold(t, watch);
      await t.put('b', '3');
      expect(t.events(await watch.events(watchId, 1), startRevision)).toEqual(['PUT b=3 +0']);
      expect(watch.arrived(noWatchId)).toEqual([]);
      expect(revisionOf(await watch.progress())).toBe(startRevision);
    },
  },
  {
    name: 'answers with nothing while a watch that compaction has ended is not cancelled',
    since: '3.6',
    run: async (t) => {
      const watch = t.watchStream();
      const first = await t.put('a', '1');
      const second = await t.put('a', '2');
      await t.kv.compact({ revision: second });
      const ended = (await watch.create({ key: t.key('a'), startRevision: first - 1n })).watchId;
      await watch.canceled(ended);
      watch.send({ case: 'progressRequest', value: {} });
      await nothingTold(t, watch);
      await watch.cancel(ended);
      expect((await watch.progress()).watchId).toBe(noWatchId);
    },
  },
];

/** A watch existed, and no longer does. */
async function cancelledAgain(t: CaseContext, watch: WatchStream): Promise<void> {
  await watch.cancel((await watch.create({ key: t.key('short') })).watchId);
}

/** The earlier request had no response: the event of a watch that is created now would come after it. */
async function nothingTold(t: CaseContext, watch: WatchStream): Promise<void> {
  const { watchId } = await watch.create({ key: t.key('later') });
  await t.put('later');
  await watch.events(watchId, 1);
  expect(watch.arrived(noWatchId)).toEqual([]);
}

export const watchControl: CaseGroup = {
  name: 'Watch, cancelling and progress',
  cases: [...cancellation, ...progress],
};

export const watchProgressInterval: CaseGroup = {
  name: 'Watch, progress by the clock',
  server: { progressNotifyIntervalMs: 200 },
  cases: [
    {
      name: 'sends progress periodically to an idle watch, only on request',
      run: async (t) => {
        const watch = t.watchStream();
        const asked = (await watch.create({ key: t.key('a'), progressNotify: true })).watchId;
        const silent = (await watch.create({ key: t.key('a') })).watchId;
        const revision = await t.put('unwatched');
        await t.until('the progress has reached the revision', async () => {
          const reply = await watch.next(asked);
          expect(reply).toMatchObject({ created: false, canceled: false, events: [] });
          return revisionOf(reply) === revision;
        });
        expect(revisionOf(await watch.next(asked))).toBe(revision);
        expect(watch.arrived(silent)).toEqual([]);
      },
    },
    {
      name: 'sends no progress before the start revision of a watch',
      since: '3.6',
      run: async (t) => {
        const watch = t.watchStream();
        const startRevision = (await t.revision()) + 2n;
        const future = (await watch.create({ key: t.key('a'), startRevision, progressNotify: true })).watchId;
        const present = (await watch.create({ key: t.key('b'), progressNotify: true })).watchId;
        for (let told = 0; told < 3; told += 1) await watch.next(present);
        expect(watch.arrived(future)).toEqual([]);
        await t.put('c');
        await t.put('c');
        expect(revisionOf(await watch.next(future))).toBe(startRevision);
      },
    },
    {
      name: 'never reports a revision before its events',
      run: async (t) => {
        const watch = t.watchStream();
        const { watchId } = await watch.create({ key: t.key('a'), progressNotify: true });
        let progressReplies = 0;
        let lastRevision = 0n;
        for (let round = 0; progressReplies < 3; round += 1) {
          await t.put('a', `${round}`);
          let hasCome = false;
          await t.until('the event has come, and maybe progress replies', async () => {
            const replies = watch.arrived(watchId);
            for (const reply of replies) {
              const [first] = reply.events;
              if (first === undefined) {
                progressReplies += 1;
                expect(revisionOf(reply)).toBeGreaterThanOrEqual(lastRevision);
                lastRevision = revisionOf(reply);
              } else {
                expect(first.kv?.modRevision).toBeGreaterThan(lastRevision);
                lastRevision = first.kv?.modRevision ?? 0n;
                hasCome = true;
              }
            }
            return hasCome;
          });
          if (round % 5 !== 4) continue;
          const reply = await watch.next(watchId);
          expect(reply.events).toEqual([]);
          expect(revisionOf(reply)).toBe(lastRevision);
          progressReplies += 1;
        }
      },
    },
  ],
};
