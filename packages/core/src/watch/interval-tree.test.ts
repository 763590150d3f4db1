import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IntervalTree } from './interval-tree.ts';

const key = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 3 });
const range = fc.record({ start: key, end: fc.option(key, { nil: undefined }) });
type Range = { start: string; end: string | undefined };

function nameOf({ start, end }: Range): string {
  return end === undefined ? `${start}..` : `${start}..${end}`;
}

function holds({ start, end }: Range, at: string): boolean {
  return at >= start && (end === undefined || at < end);
}

test('finds exactly the ranges that contain a key, after any additions and removals', () => {
  fc.assert(
    fc.property(fc.array(range, { maxLength: 60 }), fc.array(key, { maxLength: 20 }), (toggles, probes) => {
      const tree = new IntervalTree<string>();
      const expected = new Map<string, Range>();
      for (const toggled of toggles) {
        const name = nameOf(toggled);
        if (expected.delete(name)) tree.delete(toggled.start, toggled.end);
        else {
          expected.set(name, toggled);
          tree.add(toggled.start, toggled.end, name);
        }
        expect(tree.get(toggled.start, toggled.end)).toBe(expected.has(name) ? name : undefined);
      }
      expect(Array.from(tree.values()).sort()).toEqual(Array.from(expected.keys()).sort());
      for (const at of probes) {
        const found: string[] = [];
        tree.visit(at, (name) => found.push(name));
        const wanted = Array.from(expected.entries()).filter(([, each]) => holds(each, at));
        expect(found.sort()).toEqual(wanted.map(([name]) => name).sort());
      }
    }),
  );
});

test('stays shallow when ranges are added and removed in order, which unbalances a plain tree', () => {
  const tree = new IntervalTree<number>();
  // Every step down is a call, so a tree as deep as this would have overflowed the stack.
  const count = 50_000;
  const keyOf = (n: number): string => String(n).padStart(6, '0');
  for (let n = 0; n < count; n++) tree.add(keyOf(n), keyOf(n + 2), n);
  for (let n = 0; n < count - 1000; n++) tree.delete(keyOf(n), keyOf(n + 2));
  const found: number[] = [];
  tree.visit(keyOf(count - 500), (n) => found.push(n));
  expect(found).toEqual([count - 501, count - 500]);
});

test('refuses to add a range twice and to remove an unknown range', () => {
  const tree = new IntervalTree<number>();
  tree.add('a', undefined, 1);
  expect(() => tree.add('a', undefined, 2)).toThrow('already in the tree');
  expect(() => tree.delete('a', 'b')).toThrow('not in the tree');
});
