import { expect, test } from 'vitest';
import { parseSummaries } from './etcd-generator.ts';

const summary = `
Summary:
  Total:	0.2451 secs.
  Slowest:	0.0302 secs.
  Fastest:	0.0004 secs.
  Average:	0.0093 secs.
  Stddev:	0.0045 secs.
  Requests/sec:	40801.7134

Latency distribution:
  90% in 0.0151 secs.
  99% in 0.0234 secs.
  99.9% in 0.0290 secs.
`;

test('reads the rate and the 99th percentile of each summary', () => {
  const output = `Put summary:\n${summary}\nWatch events summary:\n${summary.replace('40801.7134', '1.5e+06')}`;
  expect(parseSummaries(output)).toEqual([
    { perSecond: 40_801.7134, p99Ms: expect.closeTo(23.4) as number },
    { perSecond: 1_500_000, p99Ms: expect.closeTo(23.4) as number },
  ]);
});

test('refuses an output with failed calls, which the program itself does not', () => {
  const output = `${summary}\nError distribution:\n  [12]	etcdserver: too many requests\n`;
  expect(() => parseSummaries(output)).toThrow('too many requests');
});

test('refuses an output without a rate', () => {
  expect(() => parseSummaries('bench with linearizable range\n')).toThrow('no rate');
});
