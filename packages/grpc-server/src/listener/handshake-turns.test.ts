import { expect, test } from 'vitest';
import { HandshakeTurns } from './handshake-turns.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Blocks the event loop, as a signature does. */
function block(ms: number): void {
  for (const endMs = performance.now() + ms; performance.now() < endMs;);
}

test('some of many quick handshakes begin in each turn of the event loop, in order', async () => {
  const turns = new HandshakeTurns();
  const begun: number[] = [];
  for (let at = 0; at < 100; at += 1) turns.add(() => begun.push(at));
  const counts: number[] = [];
  while (begun.length < 100) {
    const before = begun.length;
    await turn();
    counts.push(begun.length - before);
  }
  expect(begun).toEqual(Array.from({ length: 100 }, (_, at) => at));
  expect(Math.max(...counts)).toBeLessThanOrEqual(32);
});

test('slow handshakes leave the event loop after a few milliseconds', async () => {
  const turns = new HandshakeTurns();
  let begun = 0;
  for (let at = 0; at < 40; at += 1) {
    turns.add(() => {
      block(3);
      begun += 1;
    });
  }
  let most = 0;
  while (begun < 40) {
    const before = begun;
    await turn();
    most = Math.max(most, begun - before);
  }
  // Two fit in a turn, and a third one may begin before this test looks.
  expect(most).toBeLessThanOrEqual(3);
});

test('one that is taken out of the queue does not begin, and those after it do', async () => {
  const turns = new HandshakeTurns();
  const begun: string[] = [];
  turns.add(() => begun.push('one'));
  const leave = turns.add(() => begun.push('two'));
  turns.add(() => begun.push('three'));
  leave();
  for (let at = 0; at < 5; at += 1) await turn();
  expect(begun).toEqual(['one', 'three']);
});
