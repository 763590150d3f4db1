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

describe('the monitor of the leader', () => {
  test('lets three election timeouts pass without a leader, and no more', async () => {
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

  test('begins to count anew when there was a leader in between, and tells for as long as there is none', async () => {
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
