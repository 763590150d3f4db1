import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

test('runs so many jobs at once, the others in order of arrival, also after one has failed', async () => {
  const turns = new Turns(2);
  const begun: number[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const jobs = [0, 1, 2, 3].map((job) =>
    turns
      .run(() => {
        begun.push(job);
        return new Promise<number>((resolve, reject) => {
          ends[job] = (error) => (error === undefined ? resolve(job) : reject(error));
        });
      })
      .catch((error: unknown) => String(error)),
  );
  await Promise.resolve();
  expect(begun).toEqual([0, 1]);
  ends[1]?.(new Error('failed'));
  expect(await jobs[1]).toBe('Error: failed');
  await Promise.resolve();
  expect(begun).toEqual([0, 1, 2]);
  ends[0]?.();
  await jobs[0];
  expect(begun).toEqual([0, 1, 2, 3]);
  ends[2]?.();
  ends[3]?.();
  expect(await Promise.all(jobs)).toEqual([0, 'Error: failed', 2, 3]);
});
