import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { HoldDeadline } from './hold-deadline.ts';

const ttls = fc.integer({ min: 1, max: 10 ** 9 });
const moments = fc.integer({ min: 0, max: 10 ** 9 });

describe('the deadline of a hold', () => {
  test('is before the end of the life that the store gives, by a tenth or 20 ms', () => {
    fc.assert(
      fc.property(moments, ttls, (sentAtMs, ttlMs) => {
        const deadline = new HoldDeadline(sentAtMs, ttlMs);
        const marginMs = sentAtMs + ttlMs - deadline.atMs;
        assert.ok(marginMs >= Math.min(20, ttlMs / 2) - 1e-3 && marginMs >= ttlMs * 0.1 - 1e-3);
        assert.ok(marginMs <= ttlMs / 2 + 1e-3);
        assert.ok(deadline.hasPassed(deadline.atMs) && !deadline.hasPassed(deadline.atMs - 1));
      }),
    );
  });

  test('never goes back, in whatever order renewals are told', () => {
    fc.assert(
      fc.property(moments, fc.array(moments), ttls, (sentAtMs, renewals, ttlMs) => {
        const deadline = new HoldDeadline(sentAtMs, ttlMs);
        for (const renewedAtMs of renewals) {
          const before = deadline.atMs;
          deadline.extend(renewedAtMs, ttlMs);
          assert.ok(deadline.atMs >= before);
        }
        assert.equal(deadline.atMs, new HoldDeadline(Math.max(sentAtMs, ...renewals), ttlMs).atMs);
      }),
    );
  });
});
