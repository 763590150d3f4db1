import { expect } from 'vitest';
import { etcdserverpb, mvccpb } from '@tenure/protocol';
import { Code } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import { revisionOf, type CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { op } from './txn-parts.ts';

const { WatchCreateRequest_FilterType: Filter } = etcdserverpb;

const contents: Case[] = [
  {
    name: 'reports a put with the whole pair',
    run: async (t) => {
      const lease = await t.grant();
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a') });
      const created = await t.put('a', '1');
      const modified = await t.put('a', '2', lease);
      const events = await watch.events(watchId, 2);
      expect(t.events(events, created)).toEqual(['PUT a=1 +0', 'PUT a=2 +1']);
      expect(events[1]?.kv).toMatchObject({ createRevision: created, modRevision: modified, version: 2n, lease });
      expect(events.map(({ prevKv }) => prevKv)).toEqual([undefined, undefined]);
    },
  },
  {
    name: 'reports a deletion with only the key and its revision',
    run: async (t) => {
      const lease = await t.grant();
      await t.put('a', '1', lease);
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a') });
      const deleted = await t.delete('a');
      const [event] = await watch.events(watchId, 1);
      expect(event?.type).toBe(mvccpb.Event_EventType.DELETE);
      expect(event?.prevKv).toBeUndefined();
      expect(event?.kv).toMatchObject({ modRevision: deleted, createRevision: 0n, version: 0n, lease: 0n });
      expect(event?.kv?.value).toHaveLength(0);
    },
  },
  {
    name: 'sends the previous pair on request, also for past events',
    run: async (t) => {
      const lease = await t.grant();
      const base = await t.put('a', '1', lease);
      await t.put('a', '2');
      await t.delete('a');
      await t.put('a', '3');
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a'), startRevision: base, prevKv: true });
      const events = await watch.events(watchId, 4);
      expect(previous(t, events)).toEqual(['', 'a=1', 'a=2', '']);
      expect(events[1]?.prevKv).toMatchObject({ createRevision: base, modRevision: base, version: 1n, lease });
      await t.put('a', '4');
      expect(previous(t, await watch.events(watchId, 1))).toEqual(['a=3']);
    },
  },
  {
    name: 'sends no compacted previous pair',
    run: async (t) => {
      await t.put('a', '1');
      const second = await t.put('a', '2');
      await t.put('a', '3');
      await t.kv.compact({ revision: second });
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('a'), startRevision: second, prevKv: true });
      const events = await watch.events(watchId, 2);
      expect(previous(t, events)).toEqual(['', 'a=2']);
    },
  },
  {
    name: 'sends no event for writes that were refused or changed nothing',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create(t.all());
      await t.kv.put({ key: t.key('a'), ignoreValue: true }).catch(() => undefined);
      await t.put('a', '1', 0x7fffffffn).catch(() => undefined);
      await t.delete('a');
      const base = await t.put('end');
      expect(t.events(await watch.events(watchId, 1), base)).toEqual(['PUT end= +0']);
    },
  },
];

async function filtered(
  t: CaseContext,
  filters: (0 | 1)[],
  startRevision = 0n,
): Promise<(base: bigint) => Promise<string[]>> {
  const watch = t.watchStream();
  const { watchId } = await watch.create({ ...t.all(), filters, startRevision });
  return async (base) => {
    const { revision } = (await watch.progress()).header ?? {};
    expect(revision).toBe(await t.revision());
    return t.events(
      watch.arrived(watchId).flatMap(({ events }) => events),
      base,
    );
  };
}

/** 'a=1' or '' for each. */
function previous(t: CaseContext, events: readonly mvccpb.Event[]): string[] {
  return events.map(({ prevKv }) => (prevKv === undefined ? '' : (t.pairs([prevKv])[0] ?? '')));
}

/** The events as they occur, and as a watch from the past reads them: up to and including the one of the key 'end'. */
async function eventsBothWays(
  t: CaseContext,
  change: () => Promise<unknown>,
  eventCount: number,
): Promise<{ base: bigint; ways: mvccpb.Event[][] }> {
  const base = await t.revision();
  const watch = t.watchStream();
  const { watchId: present } = await watch.create({ ...t.all(), prevKv: true });
  await change();
  await t.put('end');
  const happened = await watch.events(present, eventCount + 1);
  const { watchId: past } = await watch.create({ ...t.all(), prevKv: true, startRevision: base + 1n });
  return { base, ways: [happened, await watch.events(past, eventCount + 1)] };
}

/** etcd refuses a key that is put and deleted in one transaction as a duplicate, except in these forms. */
const putAndDeleted: Case[] = [
  {
    name: 'has, for a key that a transaction puts and deletes, the pair from before the transaction both times',
    run: async (t) => {
      await t.put('a', '0');
      const put = op.txn({ success: [op.put({ key: t.key('a'), value: bytes('1') })] });
      const remove = op.txn({ success: [op.delete({ key: t.key('a') })] });
      for (const [name, operations] of [
        ['side by side', [put, remove]],
        ['with a second deletion', [put, remove, remove]],
        ['a level below', [op.txn({ success: [put, remove] })]],
      ] as const) {
        const { base, ways } = await eventsBothWays(t, () => t.kv.txn({ success: [...operations] }), 2);
        for (const events of ways) {
          expect(t.events(events, base), name).toEqual(['PUT a=1 +1', 'DELETE a +1', 'PUT end= +2']);
          expect(previous(t, events.slice(0, 2)), name).toEqual(['a=0', 'a=0']);
          expect(events[1]?.prevKv?.version, name).toBe(1n);
        }
        await t.put('a', '0');
      }
    },
  },
  {
    name: 'sends no previous pair of a key that a transaction creates and deletes',
    run: async (t) => {
      await t.put('b', '0');
      const change = () =>
        t.kv.txn({
          success: [
            op.txn({ success: ['c', 'a'].map((name) => op.put({ key: t.key(name), value: bytes('1') })) }),
            op.txn({ success: [op.delete({ ...t.all() })] }),
          ],
        });
      const { base, ways } = await eventsBothWays(t, change, 5);
      for (const events of ways) {
        const changes = ['PUT c=1 +1', 'PUT a=1 +1', 'DELETE a +1', 'DELETE b +1', 'DELETE c +1'];
        expect(t.events(events, base)).toEqual([...changes, 'PUT end= +2']);
        expect(previous(t, events)).toEqual(['', '', '', 'b=0', '', '']);
      }
    },
  },
  {
    name: 'reports a put after a deletion without an end as a creation, and a second deletion like the first',
    run: async (t) => {
      // Only a range without an end may cover a key that is also put.
      await t.put('z', '0');
      const key = t.key('z');
      const remove = op.delete({ key, rangeEnd: new Uint8Array(1) });
      const { base, ways } = await eventsBothWays(
        t,
        () => t.kv.txn({ success: [remove, op.put({ key, value: bytes('1') }), remove] }),
        3,
      );
      for (const events of ways) {
        const changes = ['DELETE z +1', 'PUT z=1 +1', 'DELETE z +1'];
        expect(t.events(events, base)).toEqual([...changes, 'PUT end= +2']);
        expect(previous(t, events)).toEqual(['z=0', '', 'z=0', '']);
      }
    },
  },
  {
    name: 'refuses the other ways to put and delete a key in one transaction',
    run: async (t) => {
      await t.put('a', '0');
      const put = op.put({ key: t.key('a'), value: bytes('1') });
      const remove = op.delete({ key: t.key('a') });
      const nested = (only: typeof put) => op.txn({ success: [only] });
      for (const success of [
        [put, remove],
        [put, nested(remove)],
        [nested(put), remove],
        [nested(remove), nested(put)],
        [nested(put), nested(remove), nested(put)],
      ]) {
        await expect(t.kv.txn({ success })).rejects.toMatchObject({
          code: Code.invalidArgument,
          details: 'etcdserver: duplicate key given in txn request',
        });
      }
      expect((await t.get('a'))?.version).toBe(1n);
    },
  },
];

const filters: Case[] = [
  {
    name: 'leaves out puts or deletions or both, in the present',
    run: async (t) => {
      const noPut = await filtered(t, [Filter.NOPUT]);
      const noDelete = await filtered(t, [Filter.NODELETE]);
      const neither = await filtered(t, [Filter.NODELETE, Filter.NOPUT]);
      const base = await t.put('a', '1');
      await t.delete('a');
      await t.kv.txn({ success: [op.put({ key: t.key('b') }), op.put({ key: t.key('a') })] });
      await t.kv.txn({ success: [op.put({ key: t.key('c') }), op.delete({ key: t.key('b') })] });
      // A progress reply comes only after the events before it.
      expect(await noPut(base)).toEqual(['DELETE a +1', 'DELETE b +3']);
      expect(await noDelete(base)).toEqual(['PUT a=1 +0', 'PUT b= +2', 'PUT a= +2', 'PUT c= +3']);
      expect(await neither(base)).toEqual([]);
    },
  },
  {
    name: 'leaves out puts of the past',
    run: async (t) => {
      const base = await t.put('a', '1');
      await t.put('a', '2');
      await t.delete('a');
      await t.put('b', '1');
      await t.delete('b');
      const watch = t.watchStream();
      const { watchId } = await watch.create({ ...t.all(), filters: [Filter.NOPUT], startRevision: base });
      expect(t.events(await watch.events(watchId, 2), base)).toEqual(['DELETE a +2', 'DELETE b +4']);
    },
  },
];

const grouping: Case[] = [
  {
    name: 'sends all events of a transaction in one reply, in the order of its operations',
    run: async (t) => {
      await t.put('gone');
      const watch = t.watchStream();
      const { watchId } = await watch.create(t.all());
      const base = await t.revision();
      const names = ['z', 'm', 'a', 'q'];
      await t.kv.txn({
        success: [...names.map((name) => op.put({ key: t.key(name) })), op.delete({ key: t.key('gone') })],
      });
      const replies = await watch.replies(watchId, 5);
      expect(replies).toHaveLength(1);
      expect(t.events(replies[0]?.events ?? [], base)).toEqual([
        ...names.map((name) => `PUT ${name}= +1`),
        'DELETE gone +1',
      ]);
      expect(revisionOf(replies[0] ?? {})).toBeGreaterThanOrEqual(base + 1n);
    },
  },
  {
    name: 'sends a deleted range in key order in one reply',
    run: async (t) => {
      for (const name of ['c', 'a', 'b']) await t.put(name, '1');
      const watch = t.watchStream();
      const { watchId } = await watch.create(t.all());
      const base = await t.revision();
      await t.kv.deleteRange(t.all());
      const replies = await watch.replies(watchId, 3);
      expect(replies).toHaveLength(1);
      expect(t.events(replies[0]?.events ?? [], base)).toEqual(['DELETE a +1', 'DELETE b +1', 'DELETE c +1']);
    },
  },
  {
    name: 'sends a watch only the events of its range in a transaction',
    run: async (t) => {
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('b') });
      const base = await t.revision();
      await t.kv.txn({ success: ['a', 'b', 'c'].map((name) => op.put({ key: t.key(name), value: bytes('1') })) });
      expect(t.events(await watch.events(watchId, 1), base)).toEqual(['PUT b=1 +1']);
    },
  },
  {
    name: 'sends each of many watches on one stream its own events',
    run: async (t) => {
      const watches = 200;
      const watch = t.watchStream();
      for (let index = 0; index < watches; index += 1) await watch.create({ key: t.key(`k${index}`) });
      const base = await t.revision();
      for (let index = 0; index < watches; index += 1) await t.put(`k${index}`, `${index}`);
      for (let index = 0; index < watches; index += 1) {
        const events = await watch.events(BigInt(index), 1);
        expect(t.events(events, base)).toEqual([`PUT k${index}=${index} +${index + 1}`]);
      }
    },
  },
  {
    name: 'sends each of many streams every event',
    run: async (t) => {
      const streams = Array.from({ length: 20 }, () => t.watchStream());
      for (const stream of streams) await stream.create(t.all());
      const base = await t.revision();
      for (let index = 1; index <= 20; index += 1) await t.put('a', `${index}`);
      const expected = Array.from({ length: 20 }, (_, index) => `PUT a=${index + 1} +${index + 1}`);
      for (const stream of streams) expect(t.events(await stream.events(0n, 20), base)).toEqual(expected);
    },
  },
];

export const watchEvents: CaseGroup = {
  name: 'Watch, events',
  cases: [...contents, ...putAndDeleted, ...filters, ...grouping],
};
