import { Schedule } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { Trace } from '../world/trace.ts';
import { Violations } from '../world/violations.ts';
import { LeftoverChecker } from './leftover-checker.ts';
import { LibraryProcess } from './library-process.ts';

const schedule = new Schedule();
const process = new LibraryProcess('one', { schedule, monotonicRate: 1, wallRate: 1, wallIgnored: false });
const queue = 'lease/job';

function checker(): { checker: LeftoverChecker; at: (ms: number) => readonly string[] } {
  const ownSchedule = new Schedule();
  const violations = new Violations(ownSchedule, new Trace(ownSchedule));
  const found = new LeftoverChecker({ nowMs: () => ownSchedule.nowMs, slackMs: 100, violations });
  found.began(process, queue);
  found.claimed({ id: 'entry', name: queue, ttlMs: 950 }, process);
  const at = (ms: number): readonly string[] => {
    ownSchedule.hold(ms - ownSchedule.nowMs);
    found.check(['entry', 'of a stranger']);
    return violations.all;
  };
  return { checker: found, at };
}

test('an entry may be there while it is used, and for its TTL after that', () => {
  const { checker: found, at } = checker();
  expect(at(10_000)).toEqual([]);
  found.ended(process, queue);
  expect(at(11_099)).toEqual([]);
});

test('K3: an entry that stays, after a cancelled call or a killed process', () => {
  for (const end of ['ended', 'killed'] as const) {
    const { checker: found, at } = checker();
    found[end](process, queue);
    expect(at(1_101)).toEqual(['K3 at 1101 ms: an entry of one is there 1101 ms after its last use']);
    expect(at(1_102)).toHaveLength(1);
  }
});
