import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import { ElapsedTime } from '../time/elapsed-time.ts';
import { LinePlace } from './line-place.ts';

function enter(): { clock: FakeClock; place: LinePlace; told: string[]; observer: Parameters<LinePlace['waitBy']>[0] } {
  const clock = new FakeClock();
  const told: string[] = [];
  const entry = { name: 'lease/a', id: 'mine', ticket: 1n };
  const place = new LinePlace({ entry, ttlMs: 1_000, sentAtMs: 0, time: new ElapsedTime(clock) });
  const tell = (what: string) => (): void => void told.push(what);
  const observer = {
    gone: tell('gone'),
    deadlineDue: tell('deadline'),
    renewed: tell('renewed'),
    renewFailed: tell('failed'),
  };
  return { clock, place, told, observer };
}

describe('a place in a line', () => {
  test('that is held is not renewed by an answer after its deadline, though no timer has told of it yet', async () => {
    const { clock, place, told, observer } = enter();
    place.holdBy(observer, { isAutomatic: true });
    await clock.advance(300);
    place.renewed(200);
    assert.deepEqual(told, ['renewed']);
    const { deadlineMs } = place;
    await clock.advance(900);
    place.renewed(1_000);
    assert.deepEqual(told, ['renewed', 'deadline']);
    assert.equal(place.deadlineMs, deadlineMs);
    assert.equal(place.hasPassed(), true);
  });

  test('at which somebody waits has no deadline: only an answer that it is gone ends it', async () => {
    const { clock, place, told, observer } = enter();
    place.waitBy(observer);
    assert.equal(place.lookAtMs, Infinity);
    await clock.advance(5_000);
    place.renewed(4_900);
    place.gone();
    assert.deepEqual(told, ['renewed', 'gone']);
    assert.equal(place.isGone, true);
  });
});
