import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rangeHolds, watchRange } from './watch-range.ts';
import { WatcherIndex } from './watcher-index.ts';
import { Watcher } from './watcher.ts';

const key = fc.constantFrom('a', 'b', 'c', 'd');

/** Few ranges, so that groups have several watchers, end and begin again. */
const change = fc.oneof(
  { weight: 3, arbitrary: fc.record({ key, rangeEnd: fc.constantFrom('', '', '\0', 'c', 'e') }) },
  { weight: 2, arbitrary: fc.record({ which: fc.nat() }) },
);

function watcherOf(id: number, at: string, rangeEnd: string): Watcher<number> | undefined {
  const range = watchRange(at, rangeEnd);
  if (range === undefined) return undefined;
  const spec = { range, startRevision: 0, noPut: false, noDelete: false, prevKv: false };
  return new Watcher(id, spec, 1, 'synced');
}

function ascending(watchers: Iterable<Watcher<number>>): number[] {
  return Array.from(watchers, ({ owner }) => owner).sort((one, other) => one - other);
}

test('the watchers of a key are those that were added with a range that holds it, and not deleted', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const index = new WatcherIndex<number>();
      const open: Watcher<number>[] = [];
      for (const [id, each] of changes.entries()) {
        if ('which' in each) {
          const [gone] = open.length === 0 ? [] : open.splice(each.which % open.length, 1);
          if (gone !== undefined) index.delete(gone);
        } else {
          const watcher = watcherOf(id, each.key, each.rangeEnd);
          if (watcher === undefined) continue;
          index.add(watcher);
          open.push(watcher);
        }
        expect(index.size).toBe(open.length);
        expect(ascending(index)).toEqual(ascending(open));
        for (const at of ['a', 'b', 'c', 'd', 'e']) {
          const found: Watcher<number>[] = [];
          index.visit(at, (watcher) => found.push(watcher));
          expect(ascending(found)).toEqual(ascending(open.filter(({ range }) => rangeHolds(range, at))));
        }
      }
    }),
  );
});

test('a watcher is deleted once', () => {
  const index = new WatcherIndex<number>();
  const [one, other] = [watcherOf(1, 'a', ''), watcherOf(2, 'a', '')];
  if (one === undefined || other === undefined) throw new Error('the range is empty');
  index.add(one);
  index.add(other);
  index.delete(one);
  expect(() => index.delete(one)).toThrow('a synced watcher is missing');
  expect(ascending(index)).toEqual([2]);
});
