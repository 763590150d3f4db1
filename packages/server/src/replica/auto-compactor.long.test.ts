import { expect, inject, test } from 'vitest';
import { BusyHistory } from './testing/busy-history.ts';

const minutes = { commit: 5, ci: 15, soak: 600 }[inject('effort')];
const quotaBytes = 256 * 1024 * 1024;

test(`${minutes} minutes of a thousand locks a second stay within their share of the quota`, async () => {
  const history = new BusyHistory({ quotaBytes, cyclesPerSecond: 1_000 });
  let mostBytes = 0;
  for (let second = 1; second <= 60 * minutes; second += 1) {
    await history.nextSecond();
    mostBytes = Math.max(mostBytes, history.state.sizeBytes);
  }
  history.stop();
  expect(history.state.currentRevision).toBeGreaterThan(60 * minutes * 1_000);
  expect(history.compactions).toBeGreaterThan(minutes / 3);
  expect(mostBytes).toBeLessThan(0.3 * quotaBytes);
});
