import { StateMachine } from '@tenure/core';
import { Schedule } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { chainHash, logStart } from '../../packages/server/src/engines/chain-hash.ts';
import type { Position } from '../../packages/server/src/engines/log-engine.ts';
import { encodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import { ruleOf } from '../failure.ts';
import { Trace } from '../world/trace.ts';
import { Violations } from '../world/violations.ts';
import { DiskChecker } from './disk-checker.ts';

const honest = { hasLostWrites: false, hasLied: false, hasFailed: false };
const entry = (timeMs: number): Buffer => Buffer.from(encodeEntry({ epoch: 0, timeMs }, []));

function after(position: Position, bytes: Uint8Array): Position {
  return { index: position.index + 1, hash: chainHash(position.hash, bytes) };
}

/** A log of two acknowledged entries. */
function checkerOfTwo() {
  const schedule = new Schedule();
  const violations = new Violations(schedule, new Trace(schedule));
  const checker = new DiskChecker(violations, () => 1_000);
  const ends = [logStart];
  for (const bytes of [entry(1), entry(2)]) {
    checker.appendBegun([bytes]);
    checker.appended(true);
    ends.push(after(ends.at(-1)!, bytes));
  }
  return { checker, ends, violations };
}

const rulesOf = (violations: Violations): string[] => violations.all.map(ruleOf);

test('accepts a start that finds every acknowledged entry, and the append in flight', () => {
  const { checker, ends, violations } = checkerOfTwo();
  checker.opened(ends[2]!, [], honest);
  const bytes = entry(3);
  checker.appendBegun([bytes]);
  const end = after(ends[2]!, bytes);
  checker.opened(end, [{ position: end, bytes }], honest);
  checker.refused('fatal', 'a failed read', { ...honest, hasFailed: true });
  checker.refused('damaged', 'a flipped bit', { ...honest, hasLied: true });
  expect(violations.all).toEqual([]);
});

test('D1: an acknowledged entry is gone, unless the disk lost the last one', () => {
  const lost = checkerOfTwo();
  lost.checker.opened(lost.ends[1]!, [], honest);
  expect(rulesOf(lost.violations)).toEqual(['D1']);
  const lied = checkerOfTwo();
  lied.checker.opened(lied.ends[1]!, [], { ...honest, hasLied: true, hasLostWrites: true });
  expect(lied.violations.all).toEqual([]);
  const both = checkerOfTwo();
  both.checker.opened(logStart, [], { ...honest, hasLied: true, hasLostWrites: true });
  expect(rulesOf(both.violations)).toEqual(['D1']);
});

test('D1: a server does not start on an honest disk', () => {
  const { checker, violations } = checkerOfTwo();
  checker.refused('damaged', 'why', honest);
  checker.refused('fatal', 'why', honest);
  expect(rulesOf(violations)).toEqual(['D1', 'D1']);
});

test('D2: a second start finds less or more than the first', () => {
  const { checker, ends, violations } = checkerOfTwo();
  checker.opened(ends[2]!, [], honest);
  const bytes = entry(3);
  const end = after(ends[2]!, bytes);
  checker.opened(end, [{ position: end, bytes }], honest);
  checker.opened(ends[2]!, [], honest);
  expect(rulesOf(violations)).toEqual(['D2', 'D2']);
});

test('D3: the recovered state is not that of all entries', () => {
  const { checker, violations } = checkerOfTwo();
  checker.recovered(new StateMachine());
  expect(rulesOf(violations)).toEqual(['D3']);
});

test('D4 and A5: an append is acknowledged after a failed write, and a revision that is not in the log', () => {
  const { checker, violations } = checkerOfTwo();
  checker.appendBegun([entry(3)]);
  checker.appended(false);
  checker.acknowledged(7);
  expect(rulesOf(violations)).toEqual(['D4', 'A5']);
});
