import { expect } from 'vitest';
import { bytes } from './bytes.ts';
import { revisionOf, type CaseContext } from './case-context.ts';
import type { CaseGroup } from './case.ts';

const valueBytes = 900_000;
const keyCount = 6;
/** etcd's default --max-request-bytes plus the half MiB that it adds for gRPC. */
const fragmentBytes = 1.5 * 1024 * 1024 + 512 * 1024;

/** Creates one revision whose events, with their previous pairs, exceed the size of a reply. */
async function deleteMuch(t: CaseContext): Promise<bigint> {
  const value = bytes('v'.repeat(valueBytes));
  for (let index = 0; index < keyCount; index += 1) await t.kv.put({ key: t.key(`k${index}`), value });
  return revisionOf(await t.kv.deleteRange(t.all()));
}

const expectedEvents = Array.from({ length: keyCount }, (_, index) => `DELETE k${index} +0`);

export const watchFragment: CaseGroup = {
  name: 'Watch, fragments',
  cases: [
    {
      name: 'splits a large revision when asked, and marks all parts but the last',
      run: async (t) => {
        const watch = t.watchStream();
        const { watchId } = await watch.create({ ...t.all(), prevKv: true, fragment: true, filters: [0] });
        const deleted = await deleteMuch(t);
        const replies = await watch.replies(watchId, keyCount);
        expect(
          t.events(
            replies.flatMap(({ events }) => events),
            deleted,
          ),
        ).toEqual(expectedEvents);
        expect(replies.length).toBeGreaterThan(1);
        expect(replies.map(({ fragment }) => fragment)).toEqual(replies.map((_, index) => index < replies.length - 1));
        expect(new Set(replies.map(revisionOf)).size).toBe(1);
        for (const { events } of replies) {
          const size = events.reduce((sum, { prevKv }) => sum + (prevKv?.value.length ?? 0), 0);
          expect(size).toBeLessThan(fragmentBytes);
        }
      },
    },
    {
      name: 'splits the past in the same way',
      run: async (t) => {
        const deleted = await deleteMuch(t);
        const watch = t.watchStream();
        const create = { ...t.all(), prevKv: true, fragment: true, startRevision: deleted };
        const { watchId } = await watch.create(create);
        const replies = await watch.replies(watchId, keyCount);
        expect(
          t.events(
            replies.flatMap(({ events }) => events),
            deleted,
          ),
        ).toEqual(expectedEvents);
        expect(replies.at(-1)?.fragment).toBe(false);
        expect(replies.length).toBeGreaterThan(1);
      },
    },
    {
      name: 'sends a large revision in one reply when not asked to split it',
      run: async (t) => {
        const watch = t.watchStream();
        const { watchId } = await watch.create({ ...t.all(), prevKv: true, filters: [0] });
        const deleted = await deleteMuch(t);
        const replies = await watch.replies(watchId, keyCount);
        expect(replies).toHaveLength(1);
        expect(replies[0]?.fragment).toBe(false);
        expect(t.events(replies[0]?.events ?? [], deleted)).toEqual(expectedEvents);
      },
    },
    {
      name: 'does not mark events that fit into one reply',
      run: async (t) => {
        const watch = t.watchStream();
        const { watchId } = await watch.create({ ...t.all(), fragment: true });
        await t.put('a', '1');
        expect((await watch.replies(watchId, 1))[0]?.fragment).toBe(false);
      },
    },
  ],
};
