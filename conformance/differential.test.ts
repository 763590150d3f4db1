import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { history } from './differential/operation.ts';
import { isRefusal, Run, type RunEnd } from './differential/run.ts';
import { etcdVersion, startEtcd } from './servers/etcd-server.ts';
import type { RunningServer } from './servers/server-options.ts';
import { startTenure } from './servers/tenure-server.ts';

const runs = Number(process.env['CONFORMANCE_RUNS'] ?? 60);
const testTimeoutMs = 60_000 + runs * 1_000;

if (etcdVersion() !== undefined) {
  describe('etcd and Tenure side by side', () => {
    let etcd: RunningServer | undefined;
    let tenure: RunningServer | undefined;
    beforeAll(async () => {
      [etcd, tenure] = await Promise.all([startEtcd(), startTenure()]);
    });
    afterAll(async () => {
      await Promise.all([etcd?.stop(), tenure?.stop()]);
    });

    it(
      'answer every call of a random history alike, and show its events alike',
      { timeout: testTimeoutMs },
      async () => {
        let number = 0;
        await fc.assert(
          fc.asyncProperty(history, async (operations) => {
            if (etcd === undefined || tenure === undefined) throw new Error('a server did not start');
            number += 1;
            const [reference, subject] = await Promise.all([Run.begin(etcd, number), Run.begin(tenure, number)]);
            const calls: string[] = [];
            try {
              for (const operation of operations) {
                const [expected, actual] = await Promise.all([reference.send(operation), subject.send(operation)]);
                calls.push(`${operation.call} ${showRequest(operation.make(subject))}`);
                const soFar = calls.join('\n');
                // etcd 3.6 names the fault that comes first in a transaction; 3.4 looks at all puts before the ranges.
                if (operation.call === 'txn' && isRefusal(expected)) expect(isRefusal(actual), soFar).toBe(true);
                else expect(actual, soFar).toEqual(expected);
              }
              const [expected, actual] = await Promise.all([reference.end(), subject.end()]);
              expectSameEnd(actual, expected, calls.join('\n'));
            } finally {
              await Promise.all([reference.close(), subject.close()]);
            }
          }),
          { numRuns: runs, interruptAfterTimeLimit: testTimeoutMs - 10_000 },
        );
      },
    );
  });
} else {
  describe('etcd and Tenure side by side', () => {
    it('needs the program etcd (Debian package etcd-server)', ({ skip }) => {
      expect(process.env['CI'], 'CI must have etcd').toBeUndefined();
      skip('etcd is not installed');
    });
  });
}

/**
 * The same keys, and the same events for each watch. Whether a watch that compaction overtakes still sees what came
 * before is a matter of time, and so is a previous pair that is about to be compacted: the one that has less is right.
 */
function expectSameEnd(actual: RunEnd, expected: RunEnd, calls: string): void {
  expect(actual.state, calls).toEqual(expected.state);
  for (const [index, reference] of expected.watched.entries()) {
    const subject = actual.watched[index] ?? { events: [], isCutShort: false };
    const isCutShort = reference.isCutShort || subject.isCutShort;
    const length = isCutShort ? Math.min(reference.events.length, subject.events.length) : reference.events.length;
    const [expectedEvents, actualEvents] = [reference, subject].map(({ events }) =>
      (isCutShort ? events.slice(0, length) : events).map(withoutPrevious),
    );
    expect(actualEvents, calls).toEqual(expectedEvents);
    for (let at = 0; at < length; at += 1) {
      const [expectedPrevious, actualPrevious] = [previousOf(reference.events[at]), previousOf(subject.events[at])];
      if (expectedPrevious === undefined || actualPrevious === undefined) continue;
      expect(actualPrevious, calls).toEqual(expectedPrevious);
    }
  }
}

const previousOf = (event: unknown): unknown => (event as { prevKv?: unknown }).prevKv;

function withoutPrevious(event: unknown): unknown {
  const { prevKv: _, ...rest } = event as { prevKv?: unknown };
  return rest;
}

function showRequest(request: object): string {
  return JSON.stringify(request, (_name, value: unknown) => {
    if (typeof value === 'bigint') return `${value}`;
    return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value;
  });
}
