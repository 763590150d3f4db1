import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { MessageTurn } from './message-turn.ts';

test('many streams together have one share of each turn of the event loop', async () => {
  const turn = new MessageTurn();
  const takeAll = (): number => Array.from({ length: 1_000 }, () => turn.take()).filter(Boolean).length;
  expect(takeAll()).toBe(256);
  expect(takeAll()).toBe(0);
  await nextTurn();
  expect(takeAll()).toBe(256);
});
