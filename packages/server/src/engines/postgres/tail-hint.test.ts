import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { TailHint } from './tail-hint.ts';

describe('a hint that the log has grown', () => {
  test('that comes while the log is read is not waited for again', async () => {
    const hint = new TailHint();
    const seen = hint.count;
    hint.give();
    // Nobody gives another one: a lost hint would never end this wait.
    await assert.doesNotReject(hint.past(seen, new AbortController().signal));
  });

  test('wakes everybody who waits, and an abort wakes who it belongs to', async () => {
    const hint = new TailHint();
    const stop = new AbortController();
    const waiting = [0, 1].map(() => hint.past(hint.count, new AbortController().signal));
    const stopped = hint.past(hint.count, stop.signal);
    stop.abort();
    await stopped;
    assert.equal(hint.count, 0);
    hint.give();
    await Promise.all(waiting);
  });
});
