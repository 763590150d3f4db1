import { StateMachine } from '@tenure/core';
import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { logStart } from '../engines/chain-hash.ts';
import { EngineError } from '../engines/engine-error.ts';
import { memoryEngine } from '../engines/memory/memory-engine.ts';
import { Applier } from './applier.ts';
import { FollowLoop } from './follow-loop.ts';
import { systemClock } from '../time/system-clock.ts';

test('retries against an unavailable engine allocate nothing', async () => {
  const engine = memoryEngine();
  const listeners: number[] = [];
  let enough: () => void = () => {};
  const tried = new Promise<void>((resolve) => (enough = resolve));
  engine.follow = (_from, signal) => {
    listeners.push(getEventListeners(signal, 'abort').length);
    if (listeners.length === 4) enough();
    throw new EngineError('unavailable', 'away');
  };
  const applier = new Applier({
    state: new StateMachine(),
    position: logStart,
    isAwaited: () => true,
    onApplied: () => {},
    onOutcome: () => {},
    clock: systemClock,
    measured: () => {},
  });
  const loop = new FollowLoop(engine, applier, {
    clock: systemClock,
    applied: () => {},
    trimmed: () => Promise.resolve(),
    failed: (error) => expect.fail(error.message),
  });
  loop.start();
  await tried;
  await loop.stop();
  expect(listeners).toEqual([0, 0, 0, 0]);
  await engine.close();
});
