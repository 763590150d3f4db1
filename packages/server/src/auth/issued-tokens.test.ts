import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IssuedTokens } from './issued-tokens.ts';

interface Issued {
  readonly user: string;
  readonly digest: string;
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('issue' as const), user: fc.constantFrom('a', 'a', 'b', 'c') }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('use' as const), which: fc.nat(100) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), which: fc.nat(100) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('expire' as const), ageMs: fc.integer({ min: 10, max: 40 }) }),
  },
);

const ofUser = (tokens: readonly Issued[], user: string): Issued[] => tokens.filter((one) => one.user === user);

test('beyond the limit, the user with the most tokens loses the one used least recently, and no other', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 120, size: 'max' }), (limit, steps) => {
      const tokens = new IssuedTokens(limit);
      /** In the order of their last use. */
      let model: (Issued & { readonly usedMs: number })[] = [];
      for (const [nowMs, next] of steps.entries()) {
        if (next.kind === 'issue') model.push({ user: next.user, digest: String(nowMs), usedMs: nowMs });
        else if (next.kind === 'expire') model = model.filter(({ usedMs }) => usedMs > nowMs - next.ageMs);
        else {
          const [taken] = model.splice(next.which % Math.max(model.length, 1), 1);
          if (taken !== undefined && next.kind === 'use') model.push({ ...taken, usedMs: nowMs });
          if (taken !== undefined && next.kind === 'delete') tokens.delete(taken.digest);
        }
        const last = model.at(-1);
        if (next.kind === 'expire') tokens.deleteUnused(nowMs - next.ageMs);
        else if (last?.usedMs === nowMs) {
          tokens.set(last.digest, { issued: { user: last.user, authRevision: 1 }, lastUsedMs: nowMs });
        }
        const gone = model.filter(({ digest }) => tokens.get(digest) === undefined);
        expect(gone).toHaveLength(Math.max(model.length - limit, 0));
        for (const one of gone) {
          const own = ofUser(model, one.user);
          expect(own[0]).toBe(one);
          for (const user of ['a', 'b', 'c']) expect(ofUser(model, user).length).toBeLessThanOrEqual(own.length);
        }
        model = model.filter((one) => !gone.includes(one));
        expect(tokens.size).toBe(model.length);
        for (const { digest, user, usedMs } of model) {
          expect(tokens.get(digest)).toEqual({ issued: { user, authRevision: 1 }, lastUsedMs: usedMs });
        }
      }
    }),
  );
});
