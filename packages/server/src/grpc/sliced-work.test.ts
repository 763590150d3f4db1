import { describe, expect, test } from 'vitest';
import { SlicedWork } from './sliced-work.ts';

/** Work in virtual time, where each step of a job takes `stepMs`. */
function start(): {
  work: SlicedWork;
  job: (name: string, steps: number, stepMs?: number) => Promise<void>;
  turn: () => boolean;
  done: string[];
  turns: string[][];
} {
  let nowMs = 0;
  const turns: string[][] = [];
  const due: (() => void)[] = [];
  const done: string[] = [];
  const work = new SlicedWork({ nowMs: () => nowMs, nextTurn: (callback) => due.push(callback) });
  const job = (name: string, steps: number, stepMs = 1): Promise<void> => {
    let left = steps;
    return work
      .run(() => {
        nowMs += stepMs;
        turns.at(-1)?.push(name);
        return --left === 0;
      })
      .then(() => void done.push(name));
  };
  const turn = (): boolean => {
    const callbacks = due.splice(0);
    turns.push([]);
    for (const callback of callbacks) callback();
    return callbacks.length > 0;
  };
  return { work, job, turn, done, turns };
}

describe('work in slices', () => {
  test('holds the event loop for one slice in a turn, and jobs take turns', async () => {
    const { work, job, turn, done, turns } = start();
    const jobs = [job('a', 10), job('b', 3), job('c', 1)];
    while (turn());
    await Promise.all(jobs);
    expect(turns.map((each) => each.join('')).filter((each) => each !== '')).toEqual([
      'aaaa',
      'bbb',
      'c',
      'aaaa',
      'aa',
    ]);
    expect(done).toEqual(['b', 'c', 'a']);
    expect(work.size).toBe(0);
  });

  test('begins a few at once, the others in the order in which they came', async () => {
    const { job, turn, done } = start();
    const jobs = Array.from({ length: 12 }, (_, at) => job(`${at}`, 4 * (12 - at)));
    while (turn());
    await Promise.all(jobs);
    const begun = [...done];
    expect(new Set(begun.slice(0, 4))).not.toEqual(new Set(['8', '9', '10', '11']));
    expect(begun.indexOf('3')).toBeLessThan(begun.indexOf('11'));
  });

  test('refuses what comes when too much waits, and takes more afterwards', async () => {
    const { work, job, turn } = start();
    const jobs = Array.from({ length: 4 + 1_024 }, (_, at) => job(`${at}`, 1));
    await expect(job('more', 1)).rejects.toMatchObject({ code: 'overloaded' });
    while (turn());
    await Promise.all(jobs);
    const later = job('later', 1);
    while (turn());
    await later;
    expect(work.size).toBe(0);
  });

  test('rejects with what a job throws, and goes on with the others', async () => {
    const { work, job, turn, done } = start();
    const broken = work.run(() => {
      throw new Error('broken');
    });
    const other = job('other', 9);
    const outcome = broken.catch((error: unknown) => error);
    while (turn());
    expect(await outcome).toEqual(new Error('broken'));
    await other;
    expect(done).toEqual(['other']);
  });
});
