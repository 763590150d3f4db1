import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { rendezvousOwner } from './rendezvous.ts';
import type { Weighted } from './rendezvous.ts';

const members = fc.uniqueArray(
  fc.record({ id: fc.string({ minLength: 1, maxLength: 12 }), weight: fc.constantFrom(0.5, 1, 1, 2, 5) }),
  { minLength: 1, maxLength: 8, selector: ({ id }) => id },
);
const resources = fc.array(fc.string({ maxLength: 20 }), { minLength: 1, maxLength: 60 });

const owners = (of: readonly Weighted[], names: readonly string[]): (string | undefined)[] =>
  names.map((name) => rendezvousOwner(of, name)?.id);

/** The chi-square deviation of the counts from their expected values. */
function chiSquare(counts: readonly number[], expected: readonly number[]): number {
  return counts.reduce((sum, count, at) => sum + (count - expected[at]!) ** 2 / expected[at]!, 0);
}

describe('weighted rendezvous hashing', () => {
  test('depends on ids and weights only, not on the order of the members', () => {
    fc.assert(
      fc.property(members, resources, (group, names) => {
        expect(owners(group, names)).toStrictEqual(owners(group.toReversed(), names));
      }),
    );
  });

  test('moves only the necessary resources when a member joins or leaves', () => {
    fc.assert(
      fc.property(members, resources, fc.nat(), (group, names, pick) => {
        const gone = group[pick % group.length]!;
        const rest = group.filter((member) => member !== gone);
        const before = owners(group, names);
        const after = owners(rest, names);
        // Read backwards it is the property of a member that joins: all moved resources move to it.
        for (const [at, owner] of before.entries()) if (owner !== gone.id) expect(after[at]).toBe(owner);
      }),
    );
  });

  test('moves resources only to a member whose weight has grown', () => {
    fc.assert(
      fc.property(members, resources, fc.nat(), (group, names, pick) => {
        const grown = group[pick % group.length]!;
        const more = group.map((member) => (member === grown ? { ...member, weight: member.weight * 3 } : member));
        const before = owners(group, names);
        for (const [at, owner] of owners(more, names).entries()) {
          if (owner !== before[at]) expect(owner).toBe(grown.id);
        }
      }),
    );
  });

  // 5,000 draws and up to 9 members: chi-square of 8 degrees of freedom passes 40 once in 300,000 times by chance, and
  // the names are always the same, so this can't fail by chance at all.
  test.each([
    { how: 'alike', weights: [1, 1, 1, 1, 1] },
    { how: 'by weight', weights: [1, 2, 3, 4] },
    { how: 'by weights far apart', weights: [0.1, 10, 1, 1, 1, 1, 1, 1, 1] },
  ])('assigns $how', ({ weights }) => {
    const draws = 5_000;
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    for (const prefix of ['pod-', 'service.region.example:80', 'x'.repeat(50), '']) {
      const group = weights.map((weight, at) => ({ id: `${prefix}${at}`, weight }));
      for (const name of ['', 'partition/', 'a-rather-long-prefix-of-names/that-are-much-alike/']) {
        const counts = new Map(group.map(({ id }) => [id, 0]));
        for (let at = 0; at < draws; at++) {
          const { id } = rendezvousOwner(group, `${name}${at}`)!;
          counts.set(id, counts.get(id)! + 1);
        }
        const expected = weights.map((weight) => (draws * weight) / total);
        const strayed = chiSquare([...counts.values()], expected);
        expect(strayed, `${strayed} of ${prefix} and ${name}: ${[...counts.values()].join(', ')}`).toBeLessThan(40);
      }
    }
  });

  test('keeps id and name apart in its hash, and assigns nothing to a member of weight 0', () => {
    const pairs = [
      ['ab', 'c'],
      ['a', 'bc'],
      ['', 'abc'],
      ['abc', ''],
    ] as const;
    const rival = { id: 'rival', weight: 1 };
    const names = Array.from({ length: 64 }, (_, at) => `${at}`);
    const wins = pairs.map(([id, start]) => {
      return owners(
        [{ id, weight: 1 }, rival],
        names.map((name) => start + name),
      ).join(',');
    });
    expect(new Set(wins.map((win) => win.replaceAll(/\b(ab|a|abc)\b/g, ''))).size).toBe(pairs.length);
    expect(rendezvousOwner([{ id: 'passive', weight: 0 }], 'thing')).toBe(undefined);
    expect(rendezvousOwner([{ id: 'passive', weight: 0 }, rival], 'thing')).toBe(rival);
    expect(rendezvousOwner([], 'thing')).toBe(undefined);
  });
});
