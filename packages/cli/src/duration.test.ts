import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CliError } from './cli-error.ts';
import { formatDuration, parseDurationMs } from './duration.ts';

test('a formatted duration parses to the same value', () => {
  fc.assert(
    fc.property(fc.nat(10 ** 11), (ms) => {
      expect(parseDurationMs('TTL', formatDuration(ms))).toBe(ms);
    }),
  );
});

test.each([
  ['60', 60_000],
  ['0', 0],
  ['500ms', 500],
  ['1.5s', 1500],
  ['1h2m3s4ms', 3_723_004],
])('%s is %d ms', (text, ms) => expect(parseDurationMs('TTL', text)).toBe(ms));

test.each(['', '-1', '1.5', '1d', '0.1ms', 's', ' 1', '99999999999999999999'])(
  '%j is refused, and the error names the option',
  (text) => {
    expect(() => parseDurationMs('TTL', text)).toThrow(CliError);
    expect(() => parseDurationMs('TTL', text)).toThrow(`TTL ${JSON.stringify(text)} must be`);
  },
);
