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
