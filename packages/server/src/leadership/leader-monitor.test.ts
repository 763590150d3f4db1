import { VirtualClock } from '@tenure/test-support';
import { describe, expect, test } from 'vitest';
import { LeaderMonitor } from './leader-monitor.ts';

function watch(): { clock: VirtualClock; monitor: LeaderMonitor; set: (has: boolean) => void; told: () => number } {
  const clock = new VirtualClock();
  let has = true;
  let told = 0;
  const monitor = new LeaderMonitor({
    clock,
    electionTimeoutMs: 1_000,
    hasLeader: () => has,
    onLost: () => (told += 1),
  });
  return { clock, monitor, set: (value) => (has = value), told: () => told };
}

describe('the leader monitor', () => {
  test('reports a lost leader after three election timeouts', async () => {
    const { clock, monitor, set, told } = watch();
    await clock.advance(5_000);
    set(false);
    await clock.advance(2_900);
    expect(monitor.isLost).toBe(false);
    expect(told()).toBe(0);
    await clock.advance(400);
    expect(monitor.isLost).toBe(true);
    expect(told()).toBeGreaterThan(0);
  });

  test('counts from zero again after a leader was found, and reports at every check until then', async () => {
    const { clock, monitor, set, told } = watch();
    for (let change = 0; change < 5; change += 1) {
      set(false);
      await clock.advance(2_500);
      set(true);
      await clock.advance(500);
    }
    expect(told()).toBe(0);
    set(false);
    await clock.advance(4_000);
    const before = told();
    await clock.advance(1_000);
    expect(told()).toBe(before + 4);
    set(true);
    await clock.advance(250);
    expect(monitor.isLost).toBe(false);
  });

  test('stops', async () => {
    const { clock, monitor, set, told } = watch();
    set(false);
    monitor.stop();
    await clock.advance(10_000);
    expect(told()).toBe(0);
  });
});
