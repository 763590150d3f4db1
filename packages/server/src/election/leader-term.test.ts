import { VirtualClock } from '@tenure/test-support';
import { describe, expect, test } from 'vitest';
import { LeaderTerm } from './leader-term.ts';
import { LeaseClock } from '../leases/lease-clock.ts';
import { noChance } from '../random/testing/no-chance.ts';

const rightMs = 800;

function lead(): { clock: VirtualClock; term: LeaderTerm; lapses: number[]; began: () => void } {
  const clock = new VirtualClock();
  const lapses: number[] = [];
  const reading = () => ({ monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() });
  const term = new LeaderTerm({
    clock,
    random: noChance,
    leaseClock: new LeaseClock(clock),
    state: {
      clusterTimeMs: 0,
      lease: () => undefined,
      leases: () => [],
      deadlineOf: () => undefined,
      keyCountOfLease: () => 0,
    },
    began: reading(),
    rightMs,
    heartbeatIntervalMs: 200,
    metrics: { leaseExpired: () => {}, leaseRenewed: () => {} },
    propose: () => Promise.reject(new Error('nothing is due')),
    heartbeat: () => Promise.resolve(),
    wantsHeartbeat: () => true,
    lastAppendBeganMs: () => 0,
    lapsed: () => lapses.push(clock.monotonicMs()),
  });
  return { clock, term, lapses, began: () => term.appended(reading()) };
}

describe('a term', () => {
  test('may act until its right has lapsed by either clock, and never again', async () => {
    for (const jumpMs of [0, 2 * rightMs, -2 * rightMs]) {
      const { clock, term, lapses, began } = lead();
      await clock.advance(rightMs - 1);
      began();
      await clock.advance(rightMs - 1);
      expect(term.mayAct()).toBe(true);
      if (jumpMs === 0) await clock.advance(1);
      else clock.stepWall(jumpMs);
      expect(term.mayAct()).toBe(false);
      began();
      expect([term.mayAct(), term.mayActAlone()]).toEqual([false, false]);
      expect(lapses).toEqual([clock.monotonicMs()]);
    }
  });

  test('that hands on the lead answers nothing by itself, but may still append that it does', () => {
    const { term } = lead();
    expect(term.mayActAlone()).toBe(true);
    term.resign(new Error('the lead was handed on'));
    expect(term.mayActAlone()).toBe(false);
    expect(term.mayAct()).toBe(true);
  });
});
