import type { KvEvent } from '@tenure/core';
import { describe, expect, test } from 'vitest';
import { KeyOracle } from '../keys/key-oracle.ts';
import { grantOf, putOf, putsOf, TestLog } from '../keys/testing/test-log.ts';
import { WatchChecker } from './watch-checker.ts';
import type { WatchReply, WatchRequest } from './watch-observation.ts';

const all: WatchRequest = {
  key: '\0',
  rangeEnd: '\0',
  startRevision: 0,
  prevKv: true,
  fragment: true,
  progressNotify: true,
  noPut: false,
  noDelete: false,
};

/** A log with revisions 2 to 6, where 4 is a transaction and 6 the end of a lease with two keys. */
class Case {
  readonly oracle = new KeyOracle();
  readonly checker = new WatchChecker(() => 0, this.oracle);
  readonly log = new TestLog((entry) => this.oracle.committed(entry));

  constructor() {
    this.log.append(grantOf(7n));
    this.log.append(putOf('1.1', 'a', 7n), putOf('1.2', 'b', 7n));
    this.log.append(putsOf('1.3', ['c', 'd']), putOf('1.4', 'c'));
    this.log.append({ kind: 'leaseRevoke', id: 7n });
  }

  watch(request: Partial<WatchRequest> = {}) {
    return this.checker.observe('a watch', { ...all, ...request });
  }

  /** The events of these revisions, as the log has them. */
  reply(from: number, to: number, change: Partial<WatchReply> = {}): WatchReply {
    const events: KvEvent[] = [];
    for (let revision = from; revision <= to; revision += 1) events.push(...this.oracle.eventsAt(revision));
    const rest = { isCreated: false, isCanceled: false, compactRevision: 0, isFragment: false };
    return { watchId: 1n, revision: to, events, ...rest, ...change };
  }

  progress(revision: number): WatchReply {
    return this.reply(1, 0, { revision });
  }

  finish(): string {
    this.checker.finish(this.oracle.currentRevision);
    return this.checker.violations.join('\n');
  }
}

test('watches that report the log have no violation', () => {
  const one = new Case();
  const watch = one.watch();
  watch.created(1, one.progress(6));
  watch.events(one.reply(2, 3));
  watch.progress(one.progress(3));
  const [first, ...others] = one.reply(4, 4).events;
  watch.events(one.reply(4, 4, { events: [first!], isFragment: true }));
  watch.ended();
  watch.created(watch.resumeRevision!, one.progress(6));
  watch.events(one.reply(4, 4, { events: [first!], isFragment: true }));
  watch.events(one.reply(4, 4, { events: others }));
  one.log.append({ kind: 'compact', revision: 6 });
  watch.ended();
  watch.created(5, one.progress(6));
  expect(watch.compacted(one.reply(1, 0, { isCanceled: true, compactRevision: 6 }))).toBe(6);
  watch.created(6, one.progress(6));
  watch.events(one.reply(6, 6));
  const filtered = one.watch({ key: 'a', rangeEnd: 'c', noPut: true });
  filtered.created(2, one.progress(6));
  filtered.events(one.reply(6, 6));
  const future = one.watch();
  future.created(9, one.progress(6));
  expect(one.finish()).toBe('');
});

type Watching = (one: Case, watch: ReturnType<Case['watch']>) => void;

describe('a violation is', () => {
  test.each<[what: string, rule: RegExp, watching: Watching, request?: Partial<WatchRequest>]>([
    ['an event of another key', /^W1 /, (one, watch) => watch.events(one.reply(2, 2)), { key: 'b', rangeEnd: '' }],
    ['an event that the filter excludes', /^W1 /, (one, watch) => watch.events(one.reply(2, 2)), { noPut: true }],
    [
      'an earlier revision',
      /^W2 /,
      (one, watch) => watch.events(one.reply(2, 3, { events: [...one.reply(3, 3).events, ...one.reply(2, 2).events] })),
    ],
    [
      'the keys of a transaction in another order',
      /^W2 /,
      (one, watch) =>
        watch.events(one.reply(2, 4, { events: [...one.reply(2, 3).events, ...one.reply(4, 4).events.toReversed()] })),
    ],
    [
      'an event that comes twice',
      /^W3 /,
      (one, watch) => watch.events(one.reply(2, 2, { events: [...one.reply(2, 2).events, ...one.reply(2, 2).events] })),
    ],
    [
      'a revision that comes again after resumption',
      /^W3 /,
      (one, watch) => {
        watch.events(one.reply(2, 3));
        watch.ended();
        watch.created(4, one.progress(6));
        watch.events(one.reply(3, 4));
      },
    ],
    [
      'a revision that is split',
      /^W4 /,
      (one, watch) => watch.events(one.reply(2, 4, { events: one.reply(2, 4).events.slice(0, 3) })),
    ],
    [
      'progress within a series of fragments',
      /^W4 /,
      (one, watch) => {
        watch.events(one.reply(2, 2, { isFragment: true }));
        watch.progress(one.progress(3));
      },
    ],
    ['progress before the events', /^W5 .* is missing/, (one, watch) => watch.progress(one.progress(2))],
    [
      'progress that goes back',
      /^W5 /,
      (one, watch) => {
        watch.events(one.reply(2, 3));
        watch.progress(one.progress(2));
      },
    ],
    [
      'a gap after resumption',
      /^W6 /,
      (one, watch) => {
        watch.events(one.reply(2, 2));
        watch.ended();
        watch.created(3, one.progress(6));
        watch.events(one.reply(4, 4));
      },
    ],
    ['a watch that no server accepts again', /^W6 /, (_, watch) => watch.ended()],
    ['a gap', /^W7 /, (one, watch) => watch.events(one.reply(3, 4))],
    ['an event that never comes', /^W7 /, (one, watch) => watch.events(one.reply(2, 4))],
    [
      'an event that is not in the log',
      /^W7 /,
      (one, watch) => {
        const [event] = one.reply(2, 2).events;
        watch.events(
          one.reply(2, 3, {
            events: [event!, ...one.reply(3, 3).events, { ...event!, kv: { ...event!.kv, key: 'z', modRevision: 3 } }],
          }),
        );
      },
    ],
    [
      'a value that is wrong',
      /^W8 /,
      (one, watch) =>
        watch.events(
          one.reply(2, 2, {
            events: one.reply(2, 2).events.map((event) => ({ ...event, kv: { ...event.kv, version: 2 } })),
          }),
        ),
    ],
    [
      'a previous value that is missing',
      /^W8 /,
      (one, watch) =>
        watch.events(
          one.reply(2, 5, { events: one.reply(2, 5).events.map((event) => ({ ...event, prevKv: undefined })) }),
        ),
    ],
    [
      'a previous value that was not asked for',
      /^W8 /,
      (one, watch) => watch.events(one.reply(2, 5)),
      { prevKv: false },
    ],
    [
      'a gap after slow reading',
      /^W9 /,
      (one, watch) => {
        watch.events(one.reply(2, 2));
        watch.slowed();
        watch.events(one.reply(4, 4));
      },
    ],
    [
      'a compaction that skips a watch silently',
      /^W10 /,
      (one, watch) => {
        one.log.append({ kind: 'compact', revision: 4 });
        watch.events(one.reply(4, 4));
      },
    ],
    [
      'an end without a compact revision',
      /^W10 /,
      (one, watch) => void watch.compacted(one.reply(1, 0, { isCanceled: true })),
    ],
    [
      'an end by a compaction that is not in the log',
      /^W10 /,
      (one, watch) => void watch.compacted(one.reply(1, 0, { compactRevision: 5 })),
    ],
    [
      'an end by a compaction of what had been seen',
      /^W10 /,
      (one, watch) => {
        watch.events(one.reply(2, 5));
        one.log.append({ kind: 'compact', revision: 4 });
        watch.compacted(one.reply(1, 0, { compactRevision: 4 }));
      },
    ],
    [
      'an event before a start in the future',
      /^W11 /,
      (one) => {
        const watch = one.watch();
        watch.created(9, one.progress(6));
        watch.events(one.reply(6, 6));
      },
    ],
    [
      'progress before a start in the future',
      /^W11 /,
      (one) => {
        const watch = one.watch();
        watch.created(9, one.progress(6));
        watch.progress(one.progress(6));
      },
    ],
    ['an event that is not durable', /^A4 /, (one, watch) => watch.events(one.reply(2, 6, { revision: 7 }))],
    ['a key that survives its lease', /^L4 /, (one, watch) => watch.events(one.reply(2, 5))],
    [
      'the keys of a lease in another order',
      /^L4 /,
      (one, watch) =>
        watch.events(one.reply(2, 6, { events: [...one.reply(2, 5).events, ...one.reply(6, 6).events.toReversed()] })),
    ],
  ])('%s', (_, rule, watching, request) => {
    const one = new Case();
    const watch = one.watch(request);
    watch.created(2, one.progress(6));
    watching(one, watch);
    expect(one.finish()).toMatch(rule);
  });
});
