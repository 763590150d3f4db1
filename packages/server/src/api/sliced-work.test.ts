import { describe, expect, test } from 'vitest';
import { type Caller, SlicedWork } from './sliced-work.ts';
import { testConnection } from '@tenure/test-support';
import type { CallerConnection } from '@tenure/grpc-server';

/** A call on a connection, which its client may cancel. */
function callOn(connection: CallerConnection): Caller & { cancel: () => void } {
  const abort = new AbortController();
  return { connection, signal: abort.signal, cancel: () => abort.abort() };
}

/** Work in virtual time, where each step of a job takes `stepMs`. */
function start(): {
  work: SlicedWork;
  /** On its own connection, unless a caller is given. */
  job: (name: string, steps: number, caller?: Caller) => Promise<void>;
  turn: () => boolean;
  done: string[];
  turns: string[][];
} {
  let nowMs = 0;
  const turns: string[][] = [];
  const due: (() => void)[] = [];
  const done: string[] = [];
  const work = new SlicedWork({ monotonicMs: () => nowMs, soon: (next) => due.push(next) });
  const job = (name: string, steps: number, caller: Caller = callOn(testConnection())): Promise<void> => {
    let left = steps;
    return work
      .run(() => {
        nowMs += 1;
        turns.at(-1)?.push(name);
        return --left === 0;
      }, caller)
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

  test('begins a few at once, the others in order of arrival', async () => {
    const { job, turn, done } = start();
    const connection = testConnection();
    const jobs = Array.from({ length: 12 }, (_, at) => job(`${at}`, 4 * (12 - at), callOn(connection)));
    while (turn());
    await Promise.all(jobs);
    const begun = [...done];
    expect(new Set(begun.slice(0, 4))).not.toEqual(new Set(['8', '9', '10', '11']));
    expect(begun.indexOf('3')).toBeLessThan(begun.indexOf('11'));
  });

  test('refuses jobs when too many wait on a connection or in total, and accepts more afterwards', async () => {
    const { work, job, turn } = start();
    const connections = Array.from({ length: 17 }, testConnection);
    const jobs: Promise<void>[] = [];
    for (const connection of connections.slice(0, 2)) {
      for (let at = 0; at < 2 + 64; at += 1) jobs.push(job('', 1, callOn(connection)));
      await expect(job('more', 1, callOn(connection))).rejects.toMatchObject({ code: 'overloaded' });
    }
    for (const connection of connections.slice(2, 16)) {
      for (let at = 0; at < 64; at += 1) jobs.push(job('', 1, callOn(connection)));
    }
    // 1,024 jobs wait. A connection without a waiting job may still add one.
    const late = connections[16]!;
    jobs.push(job('', 1, callOn(late)));
    await expect(job('more', 1, callOn(late))).rejects.toMatchObject({ code: 'overloaded' });
    // A job that is owed is not refused.
    jobs.push(work.run(() => true, callOn(late), true));
    while (work.size < 4 + 4_096) jobs.push(job('', 1));
    await expect(job('more', 1)).rejects.toMatchObject({ code: 'overloaded' });
    while (turn());
    await Promise.all(jobs);
    const later = job('later', 1);
    while (turn());
    await later;
    expect(work.size).toBe(0);
  });

  test('rejects with the error of a job, and continues with the others', async () => {
    const { work, job, turn, done } = start();
    const broken = work.run(() => {
      throw new Error('broken');
    }, callOn(testConnection()));
    const other = job('other', 9);
    const outcome = broken.catch((error: unknown) => error);
    while (turn());
    expect(await outcome).toEqual(new Error('broken'));
    await other;
    expect(done).toEqual(['other']);
  });

  test('starts jobs round-robin between connections, for any number of jobs of one of them', async () => {
    const { job, turn, done } = start();
    const [greedy, modest] = [testConnection(), testConnection()];
    const jobs = Array.from({ length: 60 }, (_, at) => job(`greedy ${at}`, 40, callOn(greedy)));
    jobs.push(job('modest', 40, callOn(modest)), job('modest too', 40, callOn(modest)));
    while (turn());
    await Promise.all(jobs);
    // It runs beside the first two of the other, and ends in the same round.
    expect(done.slice(0, 4)).toEqual(['greedy 0', 'greedy 1', 'modest', 'modest too']);
  });

  test('drops the jobs of ended calls, before they begin and between their steps', async () => {
    const { work, job, turn, done, turns } = start();
    const connection = testConnection();
    const calls = Array.from({ length: 66 }, () => callOn(connection));
    const ends = Promise.allSettled(calls.map((call, at) => job(`${at}`, 6, call)));
    turn();
    for (const call of calls) call.cancel();
    expect(work.size).toBe(0);
    const outcomes = await ends;
    expect(outcomes.every((each) => each.status === 'rejected' && each.reason.code === 1)).toBe(true);
    await expect(job('late', 1, calls[0]!)).rejects.toMatchObject({ code: 1 });
    // Its slots are free again, and the turn scheduled for it has no effect.
    const others = Array.from({ length: 66 }, (_, at) => job(`${at}`, 1, callOn(connection)));
    while (turn());
    await Promise.all(others);
    expect([done.length, turns[0]]).toEqual([66, ['0', '0', '0', '0']]);
  });

  test('does work once for all callers that share it, also when the first of them has left', async () => {
    const { work, turn } = start();
    let steps = 0;
    const step = (): boolean => (steps += 1) === 10;
    const first = callOn(testConnection());
    const connection = testConnection();
    const calls = [first, ...Array.from({ length: 60 }, () => callOn(connection))];
    const ends = Promise.allSettled(calls.map((call) => work.run(step, call)));
    first.cancel();
    while (turn());
    const outcomes = await ends;
    expect(outcomes.map(({ status }) => status)).toEqual(
      calls.map((call) => (call === first ? 'rejected' : 'fulfilled')),
    );
    expect([steps, work.size]).toEqual([10, 0]);
  });
});
