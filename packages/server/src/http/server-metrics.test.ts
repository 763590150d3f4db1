import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ServerMetrics, type MetricSource } from './server-metrics.ts';

const source: MetricSource = {
  leasesInMemory: () => 1,
  leasesCheckpointed: () => 0,
  watchers: () => 0,
  watchStreams: () => 0,
  keys: () => 2,
  revision: () => 3,
  compactRevision: () => -1,
  stateBytes: () => 4,
  logBytes: () => 5,
  appliedIndex: () => 6,
  isLeader: () => true,
};
/** Larger than any number of bytes in a test. */
const largestSensible = 2 ** 45;
/** Larger than any time since 1970. */
const largestSeconds = 2 ** 31;

interface Sample {
  readonly name: string;
  readonly labels: string;
  readonly value: number;
}

interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const suffixes: Readonly<Record<string, readonly string[]>> = { histogram: ['_bucket', '_sum', '_count'] };

/** Parses the text format like Prometheus: throws for any text that Prometheus would refuse. */
function parse(text: string): Family[] {
  const families: Family[] = [];
  let help: string | undefined;
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line) ?? [];
    if (kind === 'HELP') help = rest;
    else if (kind === 'TYPE') {
      if (help === undefined) throw new Error(`no HELP before: ${line}`);
      if (!['counter', 'gauge', 'histogram', 'summary'].includes(rest)) throw new Error(`no such type: ${line}`);
      if (families.some((family) => family.name === name)) throw new Error(`sample repeated: ${name}`);
      families.push({ name, type: rest, help, samples: [] });
      help = undefined;
    } else addSample(families.at(-1), line);
  }
  return families;
}

function addSample(family: Family | undefined, line: string): void {
  const sample = /^([a-zA-Z_:][\w:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)+\})? (\S+)$/.exec(line);
  const [, name = '', labels = '', value = ''] = sample ?? [];
  if (family === undefined || sample === null) throw new Error(`no sample: ${line}`);
  if (!(suffixes[family.type] ?? ['']).some((suffix) => name === family.name + suffix))
    throw new Error(`a sample of another family than ${family.name}: ${line}`);
  if (family.samples.some((other) => other.name === name && other.labels === labels)) throw new Error(`twice: ${line}`);
  family.samples.push({ name, labels, value: value === '+Inf' ? Infinity : Number(value) });
}

describe('the metrics', () => {
  let metrics: ServerMetrics;

  beforeEach(() => {
    metrics = new ServerMetrics({ version: 'v"1\\', source, quotaBytes: 7 });
  });

  afterEach(() => metrics.close());

  test('are finite and sensible from the first scrape on, and when one scrape follows another at once', async () => {
    const scrapes = [await metrics.text(), await metrics.text(), await metrics.text()];
    metrics.appended({ entries: 1, commands: 2, bytes: 300, durationMs: 4 });
    metrics.leaseExpired(-1);
    scrapes.push(await metrics.text());
    for (const text of scrapes) {
      const families = parse(text);
      expect(families.length).toBeGreaterThan(30);
      const odd = families.flatMap(({ samples }) =>
        samples.filter(
          ({ name, value }) => !(Math.abs(value) < (/seconds/.test(name) ? largestSeconds : largestSensible)),
        ),
      );
      expect(odd).toEqual([]);
      const slow = families.find(({ name }) => name === 'tenure_event_loop_delay_seconds');
      for (const { value } of slow?.samples ?? []) expect(value).toBeLessThan(60);
    }
  });

  test('are named by the rules of Prometheus, and each is explained', async () => {
    for (const { name, type, help } of parse(await metrics.text())) {
      expect(help.length, name).toBeGreaterThan(5);
      expect(name.endsWith('_total') && name.startsWith('tenure_') && type !== 'counter', name).toBe(false);
      if (type === 'counter') expect(name).toMatch(/_total$/);
      expect(name).not.toMatch(/_(ms|milliseconds|kb|mb|mib)(_|$)/);
    }
  });

  test('count in histograms whose buckets do not fall and end with all that was observed', async () => {
    metrics.appended({ entries: 1, commands: 2, bytes: 300, durationMs: 4 });
    metrics.appended({ entries: 1, commands: 9_999, bytes: 300, durationMs: 40_000 });
    const histograms = parse(await metrics.text()).filter(({ type, name }) => type === 'histogram' && !/gc/.test(name));
    expect(histograms.length).toBeGreaterThan(4);
    for (const { name, samples } of histograms) {
      const buckets = samples.filter((sample) => sample.name === `${name}_bucket`).map(({ value }) => value);
      expect(buckets, name).toEqual(buckets.toSorted((one, other) => one - other));
      expect(samples.find((sample) => sample.name === `${name}_count`)?.value, name).toBe(buckets.at(-1));
    }
    const seconds = histograms.find(({ name }) => name === 'tenure_log_append_duration_seconds');
    expect(seconds?.samples.at(-1)).toMatchObject({ name: 'tenure_log_append_duration_seconds_count', value: 2 });
  });
});
