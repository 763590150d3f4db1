import { VirtualClock } from '@tenure/test-support';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AuditRecord, SuppressedRecords } from './audit-record.ts';
import {
  LimitedRecords,
  maxRecordClasses,
  maxStrangerRecords,
  maxUserRecords,
  recordWindowMs,
  strangerLimit,
  userLimit,
} from './limited-records.ts';

const methods = ['Auth/Authenticate', 'KV/Put', 'KV/Range'] as const;
const classOf = (method: string): SuppressedRecords['method'] => (method === methods[0] ? method : '*');

const recordOf = (method: string): AuditRecord => ({ method, by: '', address: '192.0.2.1', allowed: false });

function setUp(limit = strangerLimit) {
  const clock = new VirtualClock();
  const written: AuditRecord[] = [];
  const summaries: SuppressedRecords[] = [];
  const record = (each: AuditRecord | SuppressedRecords): unknown =>
    'suppressed' in each ? summaries.push(each) : written.push(each);
  const records = new LimitedRecords({ record }, clock, limit);
  return { clock, written, summaries, records };
}

test('so many of strangers are written a minute, and the others are counted when it is over', async () => {
  const { clock, written, summaries, records } = setUp();
  for (let count = 0; count < 1_000; count += 1) records.record(recordOf('KV/Put'));
  records.record(recordOf('Auth/Authenticate'));
  expect(written.map(({ method }) => method)).toEqual([
    ...Array<string>(maxStrangerRecords).fill('KV/Put'),
    'Auth/Authenticate',
  ]);
  await clock.advance(recordWindowMs - 1);
  expect(summaries).toEqual([]);
  await clock.advance(1);
  expect(summaries).toEqual([{ method: '*', by: '', suppressed: 1_000 - maxStrangerRecords }]);
  expect(clock.timers).toBe(0);
  records.record(recordOf('KV/Put'));
  expect(written.length).toBe(maxStrangerRecords + 2);
  records.stop();
  records.record(recordOf('KV/Put'));
  expect([written.length, summaries.length, clock.timers]).toEqual([maxStrangerRecords + 2, 1, 0]);
});

/** Floods of one method, and pauses. */
const step = fc.record({
  method: fc.constantFrom(...methods),
  count: fc.nat(3 * maxStrangerRecords),
  pauseMs: fc.nat(recordWindowMs),
});

test('each record is written or counted, and no class has more than its limit in a window', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const { clock, written, summaries, records } = setUp();
      const writtenAtMs = new Map<string, number[]>();
      const made = new Map<string, number>();
      for (const { method, count, pauseMs } of steps) {
        const of = classOf(method);
        made.set(of, (made.get(of) ?? 0) + count);
        for (let one = 0; one < count; one += 1) {
          const before = written.length;
          records.record(recordOf(method));
          if (written.length > before) writtenAtMs.set(of, [...(writtenAtMs.get(of) ?? []), clock.monotonicMs()]);
        }
        await clock.advance(pauseMs);
      }
      records.stop();
      for (const [of, count] of made) {
        const suppressed = summaries.filter(({ method }) => method === of).map((each) => each.suppressed);
        const sum = suppressed.reduce((total, each) => total + each, 0);
        expect((writtenAtMs.get(of)?.length ?? 0) + sum).toBe(count);
        expect(Math.min(1, ...suppressed)).toBe(1);
        // Twice the limit lies further apart than a window, wherever the windows began.
        const timesMs = writtenAtMs.get(of) ?? [];
        timesMs.forEach((timeMs, n) => {
          const laterMs = timesMs[n + 2 * maxStrangerRecords];
          if (laterMs !== undefined) expect(laterMs - timeMs).toBeGreaterThanOrEqual(recordWindowMs);
        });
      }
      expect(clock.timers).toBe(0);
    }),
  );
});

const ofUser = (by: string, method: string, allowed: boolean): AuditRecord => {
  return { method, by, address: '192.0.2.1', allowed };
};

test('a user who fills a minute hides no other user, no refusal and no change of users', () => {
  const { written, summaries, records } = setUp(userLimit);
  const more = 10;
  for (let count = 0; count < maxUserRecords + more; count += 1) records.record(ofUser('ann', 'KV/Put', true));
  const others = [
    ofUser('bob', 'KV/Put', true),
    ofUser('ann', 'KV/Put', false),
    ofUser('ann', 'Auth/UserAdd', true),
    ofUser('ann', 'Auth/UserAdd', false),
  ];
  for (const other of others) records.record(other);
  expect(written.length).toBe(maxUserRecords + others.length);
  expect(written.slice(maxUserRecords)).toEqual(others);
  records.stop();
  expect(summaries).toEqual([{ method: '*', by: 'ann', allowed: true, suppressed: more }]);
});

test('users beyond the limit on classes share one', () => {
  const { written, summaries, records } = setUp({ ...userLimit, maxRecords: 2 });
  const users = maxRecordClasses + 5;
  for (let user = 0; user < users; user += 1) records.record(ofUser(`u${user}`, 'KV/Put', true));
  expect(written.length).toBe(maxRecordClasses + 2);
  records.stop();
  expect(summaries).toEqual([{ method: '*', by: '', suppressed: 3 }]);
});
