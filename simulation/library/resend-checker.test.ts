import { Schedule } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { Trace } from '../world/trace.ts';
import { Violations } from '../world/violations.ts';
import { ResendChecker } from './resend-checker.ts';

test('K5: a request that may have been done is sent again', () => {
  const schedule = new Schedule();
  schedule.hold(3);
  const violations = new Violations(schedule, new Trace(schedule));
  const checker = new ResendChecker(violations);
  checker.sent('enter a', 'one');
  checker.sent('enter a', 'one');
  checker.ambiguous('enter a');
  checker.sent('enter b', 'one');
  expect(violations.all).toEqual([]);
  checker.sent('enter a', 'one');
  expect(violations.all).toEqual(['K5 at 3 ms: one sent enter a again']);
});
