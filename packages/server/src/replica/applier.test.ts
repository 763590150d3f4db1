import { StateMachine } from '@tenure/core';
import { expect, test } from 'vitest';
import { logStart } from '../engines/chain-hash.ts';
import { Applier } from './applier.ts';
import { systemClock } from '../time/system-clock.ts';

function start(): { applier: Applier; apply: (index: number) => void } {
  const applier = new Applier({
    state: new StateMachine(),
    position: logStart,
    isAwaited: () => true,
    onApplied: () => {},
    onOutcome: () => {},
    clock: systemClock,
    measured: () => {},
  });
  return { applier, apply: (index) => void applier.apply({ index, hash: '' }, { epoch: 0, timeMs: 0 }, [], []) };
}

test('a waiter for an index is answered when that entry is applied, not before', async () => {
  const { applier, apply } = start();
  const answered: number[] = [];
  for (const index of [3, 1, 2]) void applier.whenApplied(index).then(() => answered.push(index));
  for (let index = 1; index <= 3; index += 1) {
    apply(index);
    await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toEqual([1, 2, 3].slice(0, index));
  }
  await applier.whenApplied(2);
});

test('a waiter for an index that will never be applied is rejected', async () => {
  const { applier, apply } = start();
  const [near, far] = [applier.whenApplied(1), applier.whenApplied(2)];
  apply(1);
  applier.stop(new Error('the end'));
  await near;
  await expect(far).rejects.toThrow('the end');
  await expect(applier.whenApplied(3)).rejects.toThrow('the end');
});
