import { describe, expect, test } from 'vitest';
import { VirtualClock } from '@tenure/test-support';
import { LeaseClock } from '../leases/lease-clock.ts';
import { noChance } from '../random/testing/no-chance.ts';
import type { ClockReading } from '../time/clock.ts';
import type { Decision } from './decision.ts';
import { LeaderTerm } from './leader-term.ts';

const leaderLeaseMs = 800;
const epoch = 3;

function lead() {
  const clock = new VirtualClock();
  const decisions: Decision[] = [];
  const reading = (): ClockReading => ({ monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() });
  const term = new LeaderTerm({
    clock,
    random: noChance,
    leaseClock: new LeaseClock(clock),
    state: {
      epoch,
      clusterTimeMs: 0,
      leaseCount: 0,
      lease: () => undefined,
      leases: () => [],
      deadlineOf: () => undefined,
      keyCountOfLease: () => 0,
    },
    began: reading(),
    leaderLeaseMs,
    heartbeatIntervalMs: 200,
    isShared: true,
    metrics: { leaseExpired: () => {}, leaseRenewed: () => {} },
    decisions,
  });
  return { clock, term, decisions, reading };
}

describe('a term', () => {
  test('may append until its leader lease has ended by either clock, and never after that', async () => {
    for (const jumpMs of [0, 2 * leaderLeaseMs, -2 * leaderLeaseMs]) {
      const { clock, term, decisions, reading } = lead();
      await clock.advance(leaderLeaseMs - 1);
      term.appended(reading());
      await clock.advance(leaderLeaseMs - 1);
      expect(term.beginAppend(reading())).toEqual({ timeMs: 2 * leaderLeaseMs - 2, began: reading() });
      if (jumpMs === 0) await clock.advance(1);
      else clock.stepWall(jumpMs);
      expect(term.mayActAlone).toBe(false);
      expect(term.beginAppend(reading())).toBeUndefined();
      term.appended(reading());
      expect([term.beginAppend(reading()), term.mayActAlone]).toEqual([undefined, false]);
      expect(decisions).toEqual([{ kind: 'stepDown', epoch }]);
    }
  });

  test('that is being transferred answers nothing without the log, but may still append its resignation', () => {
    const { term, reading } = lead();
    expect(term.mayActAlone).toBe(true);
    term.resign(new Error('leadership was transferred'));
    expect(term.mayActAlone).toBe(false);
    expect(term.beginAppend(reading())).toBeDefined();
  });

  test('sends a heartbeat one interval after the last append began, or at once if that has passed', async () => {
    const { clock, term, decisions, reading } = lead();
    term.begin();
    const beats: number[] = [];
    const until = async (untilMs: number): Promise<void> => {
      while (term.wakeAtMs <= untilMs) {
        await clock.advance(term.wakeAtMs - clock.monotonicMs());
        decisions.length = 0;
        term.timePassed();
        if (decisions.some(({ kind }) => kind === 'heartbeat')) beats.push(clock.monotonicMs());
        term.appended(reading());
      }
      await clock.advance(untilMs - clock.monotonicMs());
    };
    expect(decisions).toEqual([{ kind: 'heartbeat' }]);
    await until(450);
    expect(beats).toEqual([200, 400]);
    term.beginAppend(reading());
    await until(649);
    expect(beats).toEqual([200, 400]);
    await until(650);
    expect(beats).toEqual([200, 400, 650]);
  });
});
