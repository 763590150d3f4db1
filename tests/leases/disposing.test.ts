import assert from 'node:assert/strict';
import { ClosedError, LeaseLostError } from 'tenure';
import { describe, test } from 'vitest';
import { hanging, leaseWorld } from './scripted-backend.ts';

describe('disposing of a manager', () => {
  test('ends an acquisition at any moment, and leaves nothing of it in the line', async () => {
    for (const call of ['enter', 'list', 'renew'] as const) {
      for (const isDone of [true, false]) {
        const { clock, open, line } = leaseWorld();
        const first = await open('one').leases.acquire('job', { ttlMs: 60_000 });
        const { leases, way } = open('two');
        way.hooks[call] = async (pass) => {
          if (isDone) await pass();
          return await new Promise(() => {});
        };
        const refused = assert.rejects(leases.acquire('job'), ClosedError);
        await clock.advance(400);
        const disposing = leases[Symbol.asyncDispose]();
        // No time passes from here on.
        await refused;
        await disposing;
        assert.deepEqual(
          (await line('job')).map(({ ticket }) => ticket),
          [first.fencingToken],
        );
      }
    }
  });

  test('in any moment around the grant gives the lease on before it is over', async () => {
    for (let turns = 0; turns < 20; turns++) {
      const { clock, open, line, sleep } = leaseWorld();
      const { leases, way } = open('one');
      way.hooks.leave = async (pass) => {
        await sleep(10);
        return await pass();
      };
      let left: number | undefined;
      way.hooks.enter = async (pass) => {
        const entered = await pass();
        void dispose();
        return entered;
      };
      const dispose = async (): Promise<void> => {
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        await leases[Symbol.asyncDispose]();
        left = (await line('job')).length;
      };
      const outcome = leases.acquire('job').catch((error: unknown) => error instanceof ClosedError);
      await clock.advance(20);
      assert.ok(await outcome);
      assert.equal(left, 0, `${turns} turns later`);
    }
  });

  test('does not hang with the backend, or with work that does not stop', async () => {
    const { clock, open, store } = leaseWorld();
    const { leases, way } = open('one');
    way.hooks.leave = hanging;
    void leases.withLease('stubborn', {}, () => new Promise(() => {})).catch(() => {});
    await clock.advance(0);
    let isDisposed = false;
    void leases[Symbol.asyncDispose]().then(() => (isDisposed = true));
    await clock.advance(30_000);
    assert.equal(isDisposed, true);
    await store.close();
    assert.equal(clock.timerCount, 0);
  });

  test('is told to who waits, watches, asks or has joined when all has been released, and not before', async () => {
    const { clock, open, line, sleep } = leaseWorld();
    await open('other').leases.acquire('busy', { ttlMs: 60_000 });
    const { leases, way } = open('one');
    await leases.acquire('plain');
    const membership = await leases.membership('group');
    const told: string[] = [];
    const tell = (what: string) => async (error: unknown) => {
      assert.ok(error instanceof ClosedError, String(error));
      told.push(`${what}, ${(await line('plain')).length} held`);
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
    way.hooks.leave = async (pass) => {
      await sleep(100);
      return await pass();
    };
    const disposing = leases[Symbol.asyncDispose]().then(() => told.push('disposed'));
    void leases.inspect('busy').catch(tell('question'));
    void leases.tryAcquire('busy').catch(tell('try'));
    assert.throws(() => leases.requestLease('busy'), ClosedError);
    await clock.advance(99);
    assert.deepEqual(told, []);
    await clock.advance(1_000);
    await disposing;
    const last = ['membership', 'question', 'run', 'try', 'wait', 'watch', 'work'].map((what) => `${what}, 0 held`);
    assert.deepEqual(new Set(told), new Set(['disposed', ...last]));
    assert.equal(told.length, last.length + 1);
  });

  test('is told at once to what a work under a lease waits for, since it waits for that work', async () => {
    const { clock, open } = leaseWorld();
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
    ].map((work) => assert.rejects(work as Promise<unknown>, ClosedError));
    await clock.advance(0);
    const disposing = leases[Symbol.asyncDispose]();
    // No time passes from here on.
    await disposing;
    await Promise.all(outcomes);
  });

  test('may be asked for again by whoever is told to stop', async () => {
    const { open } = leaseWorld();
    const { leases } = open('one');
    const hold = await leases.acquire('job');
    let again: Promise<void> | undefined;
    hold.signal.addEventListener('abort', () => (again = leases[Symbol.asyncDispose]() as Promise<void>));
    await leases[Symbol.asyncDispose]();
    assert.ok(again !== undefined);
    await again;
  });

  test('work that releases its lease by itself has ended well', async () => {
    const { open } = leaseWorld();
    const { leases } = open('one');
    const working = leases.withLease('job', {}, async (hold) => {
      await hold.release();
      return 'done';
    });
    assert.equal(await working, 'done');
    const lost = leases.withLease('job', {}, async (hold) => {
      (hold as unknown as { lose(reason: string): void }).lose('revoked');
      return 'done';
    });
    await assert.rejects(lost, LeaseLostError);
  });
});
