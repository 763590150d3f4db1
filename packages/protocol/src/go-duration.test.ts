import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseGoDurationMs } from './go-duration.ts';

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

describe('parseGoDurationMs', () => {
  test('adds up the parts, in any order and number', () => {
    const parts = fc.array(fc.tuple(fc.nat(100_000), fc.constantFrom('ms', 's', 'm', 'h')), {
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(parts, (pairs) => {
        const text = pairs.map(([amount, unit]) => `${amount}${unit}`).join('');
        const sum = pairs.reduce((total, [amount, unit]) => total + amount * unitMs[unit as keyof typeof unitMs], 0);
        expect(parseGoDurationMs(text)).toBe(sum);
      }),
    );
  });

  test.each([
    ['0', 0],
    ['1.5s', 1500],
    ['.5s', 500],
    ['1h30m', 5_400_000],
    ['250us', 0.25],
    ['250µs', 0.25],
    ['1000000ns', 1],
  ])('%s is %d ms', (text, ms) => expect(parseGoDurationMs(text)).toBeCloseTo(ms, 9));

  test.each(['', '1', '-1s', '+1s', 's', '1 s', '1sec', '1d', '1s ', '.s', '1e3s', 'NaN', '1,5s'])(
    '%j is none',
    (text) => expect(parseGoDurationMs(text)).toBeUndefined(),
  );

  test('text of any kind gives a number from 0 up or nothing', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const ms = parseGoDurationMs(text);
        expect(ms === undefined || ms >= 0).toBe(true);
      }),
    );
  });
});
