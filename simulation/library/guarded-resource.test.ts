import { Schedule } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { Trace } from '../world/trace.ts';
import { Violations } from '../world/violations.ts';
import { GuardedResource } from './guarded-resource.ts';

function resource(): { guarded: GuardedResource; violations: Violations } {
  const schedule = new Schedule();
  schedule.hold(7);
  const violations = new Violations(schedule, new Trace(schedule));
  return { guarded: new GuardedResource(violations), violations };
}

const one = { name: 'job', token: 1n, by: 'one' };
const two = { name: 'job', token: 2n, by: 'two' };

test('a resource rejects a token below the highest, so that no update is lost', () => {
  const { guarded, violations } = resource();
  const value = guarded.read(one)!;
  expect(guarded.increment(two, guarded.read(two)!)).toBe(true);
  expect(guarded.increment(one, value)).toBe(false);
  expect(guarded.increment(two, guarded.read(two)!)).toBe(true);
  expect([violations.all, guarded.rejections]).toEqual([[], 1]);
});

test('K2: an update that is lost, and a token with two owners', () => {
  const { guarded, violations } = resource();
  const value = guarded.read(one)!;
  const other = { ...one, by: 'two' };
  guarded.increment(other, guarded.read(other)!);
  guarded.increment(one, value);
  expect(new Set(violations.all.map((violation) => violation.replace(/one|two/g, '_')))).toEqual(
    new Set([
      'K2 at 7 ms: job: _ and _ both use the token 1',
      'K2 at 7 ms: job: an update was lost, since _ wrote from 0',
    ]),
  );
});
