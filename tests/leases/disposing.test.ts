import { ClosedError, LeaseLostError } from 'tenure';
import { describe, expect, test } from 'vitest';
import { hanging, leaseFixture } from './scripted-backend.ts';

describe('disposing of a manager', () => {
  test('ends an acquisition at any moment, and leaves no entry in the queue', async () => {
    for (const call of ['enter', 'list', 'renew'] as const) {
      for (const isDone of [true, false]) {
        const { clock, open, queue } = leaseFixture();
        const first = await open('one').leases.acquire('job', { ttlMs: 60_000 });
        const { leases, backend } = open('two');
        backend.hooks[call] = async (pass) => {
          if (isDone) await pass();
          return await new Promise(() => {});
        };
        const refused = leases.acquire('job').catch((error: unknown) => error);
        await clock.advance(400);
        const disposing = leases[Symbol.asyncDispose]();
        // No time passes from here on.
        expect(await refused).toBeInstanceOf(ClosedError);
        await disposing;
        expect((await queue('job')).map(({ sequence }) => sequence)).toStrictEqual([first.fencingToken]);
      }
    }
  });

  test('at any moment around the grant passes the lease on before it ends', async () => {
    for (let turns = 0; turns < 20; turns++) {
      const { clock, open, queue, sleep } = leaseFixture();
      const { leases, backend } = open('one');
      backend.hooks.leave = async (pass) => {
        await sleep(10);
        return await pass();
      };
      let left: number | undefined;
      backend.hooks.enter = async (pass) => {
        const entered = await pass();
        void dispose();
        return entered;
      };
      const dispose = async (): Promise<void> => {
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        await leases[Symbol.asyncDispose]();
        left = (await queue('job')).length;
      };
      const outcome = leases.acquire('job').catch((error: unknown) => error instanceof ClosedError);
      await clock.advance(20);
      expect(await outcome).toBeTruthy();
      expect(left, `${turns} turns later`).toBe(0);
    }
  });

  test('does not hang with the backend, or with work that does not stop', async () => {
    const { clock, open, store } = leaseFixture();
    const { leases, backend } = open('one');
    backend.hooks.leave = hanging;
    void leases.withLease('stubborn', {}, () => new Promise(() => {})).catch(() => {});
    await clock.advance(0);
    let isDisposed = false;
    void leases[Symbol.asyncDispose]().then(() => (isDisposed = true));
    await clock.advance(30_000);
    expect(isDisposed).toBe(true);
    await store.close();
    expect(clock.timerCount).toBe(0);
  });

  test('rejects waits, watches, calls and memberships only when all leases have been released', async () => {
    const { clock, open, queue, sleep } = leaseFixture();
    await open('other').leases.acquire('busy', { ttlMs: 60_000 });
    const { leases, backend } = open('one');
    await leases.acquire('plain');
    const membership = await leases.membership('group');
    const told: string[] = [];
    const tell = (what: string) => async (error: unknown) => {
      expect(error, String(error)).toBeInstanceOf(ClosedError);
      told.push(`${what}, ${(await queue('plain')).length} held`);
    };
    const read = async (values: AsyncIterable<unknown>): Promise<void> => {
      for await (const _ of values) continue;
    };
    void leases.acquire('busy').catch(tell('wait'));
    void read(leases.watch('busy')).catch(tell('watch'));
    void read(membership.watch()).catch(tell('membership'));
    void leases
      .withLease('work', {}, async (hold) => {
        await new Promise((_, reject) => hold.signal.addEventListener('abort', () => reject(hold.signal.reason)));
      })
      .catch(tell('work'));
    void leases
      .election('main')
      .run(() => read(leases.watch('busy')))
      .catch(tell('run'));
    await clock.advance(0);
    backend.hooks.leave = async (pass) => {
      await sleep(100);
      return await pass();
    };
    const disposing = leases[Symbol.asyncDispose]().then(() => told.push('disposed'));
    void leases.inspect('busy').catch(tell('question'));
    void leases.tryAcquire('busy').catch(tell('try'));
    expect(() => leases.requestLease('busy')).toThrow(ClosedError);
    await clock.advance(99);
    expect(told).toEqual([]);
    await clock.advance(1_000);
    await disposing;
    const last = ['membership', 'question', 'run', 'try', 'wait', 'watch', 'work'].map((what) => `${what}, 0 held`);
    expect(new Set(told)).toStrictEqual(new Set(['disposed', ...last]));
    expect(told.length).toBe(last.length + 1);
  });

  test('rejects calls within the work of a lease at once, since it waits for that work', async () => {
    const { clock, open } = leaseFixture();
    await open('other').leases.acquire('busy', { ttlMs: 60_000 });
    const { leases } = open('one');
    const outcomes = [
      leases.withLease('waits', {}, async () => await leases.acquire('busy')),
      leases.withLease('inner', {}, async () => {
        return await leases.withLease('innermost', {}, async () => await leases.acquire('busy'));
      }),
      leases.election('reads').run(async () => {
        for await (const _ of leases.watch('busy')) continue;
      }),
    ].map((work) => expect(work as Promise<unknown>).rejects.toThrow(ClosedError));
    await clock.advance(0);
    const disposing = leases[Symbol.asyncDispose]();
    // No time passes from here on.
    await disposing;
    await Promise.all(outcomes);
  });

  test('may be called again by the work that is told to stop', async () => {
    const { open } = leaseFixture();
    const { leases } = open('one');
    const hold = await leases.acquire('job');
    let again: Promise<void> | undefined;
    hold.signal.addEventListener('abort', () => (again = leases[Symbol.asyncDispose]() as Promise<void>));
    await leases[Symbol.asyncDispose]();
    expect(again).toBeDefined();
    await again;
  });

  test('work that releases its lease itself has succeeded', async () => {
    const { open } = leaseFixture();
    const { leases } = open('one');
    const working = leases.withLease('job', {}, async (hold) => {
      await hold.release();
      return 'done';
    });
    expect(await working).toBe('done');
    const lost = leases.withLease('job', {}, async (hold) => {
      (hold as unknown as { lose(reason: string): void }).lose('revoked');
      return 'done';
    });
    await expect(lost).rejects.toThrow(LeaseLostError);
  });
});
