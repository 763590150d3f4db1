import { describe, expect, test } from 'vitest';
import { TailHint } from './tail-hint.ts';

describe('a hint that the log has grown', () => {
  test('that arrives while the log is read is not awaited again', async () => {
    const hint = new TailHint();
    const seen = hint.count;
    hint.give();
    // There is no second hint: a lost one would never end this wait.
    await expect(hint.past(seen, new AbortController().signal)).resolves.toBeUndefined();
  });

  test('wakes every waiter, and an abort wakes only its own', async () => {
    const hint = new TailHint();
    const stop = new AbortController();
    const waiting = [0, 1].map(() => hint.past(hint.count, new AbortController().signal));
    const stopped = hint.past(hint.count, stop.signal);
    stop.abort();
    await stopped;
    expect(hint.count).toBe(0);
    hint.give();
    await Promise.all(waiting);
  });
});
