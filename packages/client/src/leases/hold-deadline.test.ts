import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HoldDeadline } from './hold-deadline.ts';

const ttls = fc.integer({ min: 1, max: 10 ** 9 });
const moments = fc.integer({ min: 0, max: 10 ** 9 });

describe('the deadline of a hold', () => {
  test('is before the expiry in the store, by a tenth of the TTL or 20 ms', () => {
    fc.assert(
      fc.property(moments, ttls, (sentAtMs, ttlMs) => {
        const deadline = new HoldDeadline(sentAtMs, ttlMs);
        const marginMs = sentAtMs + ttlMs - deadline.atMs;
        expect(marginMs).toBeGreaterThanOrEqual(Math.min(20, ttlMs / 2) - 1e-3);
        expect(marginMs).toBeGreaterThanOrEqual(ttlMs * 0.1 - 1e-3);
        expect(marginMs).toBeLessThanOrEqual(ttlMs / 2 + 1e-3);
        expect(deadline.hasPassed(deadline.atMs)).toBe(true);
        expect(deadline.hasPassed(deadline.atMs - 1)).toBe(false);
      }),
    );
  });

  test('never moves back, in whatever order the renewals are applied', () => {
    fc.assert(
      fc.property(moments, fc.array(moments), ttls, (sentAtMs, renewals, ttlMs) => {
        const deadline = new HoldDeadline(sentAtMs, ttlMs);
        for (const renewedAtMs of renewals) {
          const before = deadline.atMs;
          deadline.extend(renewedAtMs, ttlMs);
          expect(deadline.atMs).toBeGreaterThanOrEqual(before);
        }
        expect(deadline.atMs).toBe(new HoldDeadline(Math.max(sentAtMs, ...renewals), ttlMs).atMs);
      }),
    );
  });
});
