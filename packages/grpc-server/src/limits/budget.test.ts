import { expect, test } from 'vitest';
import { Budget } from './budget.ts';

test('a returned amount is available again, for the connection and in the total', () => {
  let exceeded = 0;
  const total = new Budget(10, { onExceeded: () => (exceeded += 1) });
  const [one, other] = [new Budget(6, { total }), new Budget(6, { total })];
  for (let round = 0; round < 3; round += 1) {
    one.take(5);
    expect(one.hasRoom).toBe(true);
    one.take(1);
    expect(one.hasRoom).toBe(false);
    other.take(4);
    expect([one.taken, other.taken, total.taken]).toEqual([6, 4, 10]);
    one.giveBack(6);
    other.giveBack(4);
    expect([one.taken, other.taken, total.taken]).toEqual([0, 0, 0]);
  }
  expect(exceeded).toBe(0);
  one.take(6);
  other.take(5);
  expect(exceeded).toBe(1);
});
