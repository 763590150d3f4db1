import { describe, expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import { ElapsedTime } from '../time/elapsed-time.ts';
import { OwnEntry } from './own-entry.ts';

function enter(): {
  clock: FakeClock;
  ownEntry: OwnEntry;
  told: string[];
  observer: Parameters<OwnEntry['startWaiting']>[0];
} {
  const clock = new FakeClock();
  const told: string[] = [];
  const key = { name: 'lease/a', id: 'mine', sequence: 1n };
  const ownEntry = new OwnEntry({ key, ttlMs: 1_000, sentAtMs: 0, time: new ElapsedTime(clock) });
  const tell = (what: string) => (): void => void told.push(what);
  const observer = {
    gone: tell('gone'),
    deadlineDue: tell('deadline'),
    renewed: tell('renewed'),
    renewFailed: tell('failed'),
  };
  return { clock, ownEntry, told, observer };
}

describe('an entry in a queue', () => {
  test('that holds is not renewed by an answer after its deadline, even if no timer has run yet', async () => {
    const { clock, ownEntry, told, observer } = enter();
    ownEntry.startHolding(observer, { isAutomatic: true });
    await clock.advance(300);
    ownEntry.renewed(200);
    expect(told).toEqual(['renewed']);
    const { deadlineMs } = ownEntry;
    await clock.advance(900);
    ownEntry.renewed(1_000);
    expect(told).toEqual(['renewed', 'deadline']);
    expect(ownEntry.deadlineMs).toBe(deadlineMs);
    expect(ownEntry.hasPassed()).toBe(true);
  });

  test('that waits has no deadline: only an answer that it is gone ends it', async () => {
    const { clock, ownEntry, told, observer } = enter();
    ownEntry.startWaiting(observer);
    expect(ownEntry.checkDeadlineAtMs).toBe(Infinity);
    await clock.advance(5_000);
    ownEntry.renewed(4_900);
    ownEntry.gone();
    expect(told).toEqual(['renewed', 'gone']);
    expect(ownEntry.isGone).toBe(true);
  });
});
