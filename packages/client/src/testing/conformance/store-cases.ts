import assert from 'node:assert/strict';
import type { EntryKey, LeaseBackend } from '../../backend/lease-backend.ts';
import { BackendError } from '../../errors/backend-error.ts';
import type { Signal } from '../../time/signal.ts';
import { contains, isUnavailable, pause } from './conformance-fixture.ts';
import type { ConformanceCase, ConformanceFixture } from './conformance-fixture.ts';
import type { StoreHook } from './conformance-store.ts';
import { checkHistory } from './history-check.ts';
import { History } from './history.ts';

const settleMs = 5_000;
const killRounds = 4;

/** Signals and limits, which every backend has. */
export const callCases: readonly ConformanceCase[] = [
  {
    name: 'its limits make sense, and it polls',
    async run(fixture) {
      for (const { kind, limits, pollIntervalMs } of fixture.backends) {
        assert.match(kind, /^[a-z0-9-]+$/);
        assert.ok(limits.minTtlMs > 0 && limits.maxTtlMs > limits.minTtlMs);
        assert.ok(limits.maxNameBytes >= 512 && limits.maxDataBytes >= 1_024, 'room for a name and some data');
        assert.ok(pollIntervalMs > 0 && Number.isFinite(pollIntervalMs), 'a hint may be lost, so waiters poll');
      }
    },
  },
  {
    name: 'a call whose signal is aborted already rejects with its reason',
    async run(fixture) {
      const key = await fixture.enter(fixture.claim(fixture.name()));
      const reason = new Error('the caller gave up');
      const signal = AbortSignal.abort(reason);
      for (const call of callsOf(fixture, fixture.backends[1], key, signal)) await assert.rejects(call(), reason);
    },
  },
  {
    name: 'a call whose signal aborts on the way settles soon, with its reason or with an answer',
    async run(fixture) {
      const key = await fixture.enter(fixture.claim(fixture.name()));
      const reason = new Error('the caller gave up');
      for (let turn = 0; turn < 5; turn++) {
        const controller = new AbortController();
        const calls = callsOf(fixture, fixture.backends[1], key, controller.signal).map((call) => call());
        setTimeout(() => controller.abort(reason), turn);
        const settled = await within(settleMs, Promise.allSettled(calls));
        for (const one of settled) assert.ok(one.status === 'fulfilled' || one.reason === reason);
      }
    },
  },
];

/** Closes what it uses, so it has a store of its own. */
export const closeCase: ConformanceCase = {
  name: 'a closed backend refuses every call with the code closed, and is closed more than once',
  async run(fixture) {
    const key = await fixture.enter(fixture.claim(fixture.name()));
    const watch = fixture.backends[0].watch(key.name, () => undefined);
    for (const backend of fixture.backends) await backend.close();
    for (const backend of fixture.backends) await backend.close();
    watch.close();
    for (const call of callsOf(fixture, fixture.backends[0], key, fixture.signal)) {
      await assert.rejects(
        call(),
        (error) => error instanceof BackendError && error.backendCode === 'closed' && error.message.length > 10,
      );
    }
    fixture.backends[0].watch(key.name, () => undefined).close();
  },
};

export const hookCases: Readonly<Record<StoreHook, readonly ConformanceCase[]>> = {
  restart: [
    {
      name: 'after a restart sequence numbers grow on, entries stay, and gone entries stay gone (etcd3 #158)',
      async run(fixture) {
        const name = fixture.name();
        const gone = await fixture.enter(fixture.claim(name));
        const left = await fixture.enter(fixture.claim(fixture.name()));
        await fixture.leave(gone);
        await fixture.leave(left);
        const key = await fixture.enter(fixture.claim(name));
        await fixture.store.restart?.();
        for (const backend of fixture.backends) await fixture.untilAvailable(backend);
        const again = await fixture.enter(fixture.claim(name), fixture.backends[1]);
        const empty = await fixture.enter(fixture.claim(left.name), fixture.backends[2]);
        assert.ok(again.sequence > key.sequence && empty.sequence > left.sequence, 'sequence numbers started again');
        const queue = await fixture.list(name, fixture.backends[2]);
        assert.ok(queue.length === 2 && contains(queue, key) && contains(queue, again));
        assert.equal(await fixture.renew(gone, fixture.longTtlMs), false);
        assert.equal(await fixture.renew(key, fixture.longTtlMs), true);
      },
    },
  ],
  killConnections: [
    {
      name: 'what was asked for on a connection that broke was done once or not at all (redlock #369)',
      async run(fixture) {
        const history = new History();
        for (let round = 0; round < fixture.rounds(killRounds); round++) await enterWhileBroken(fixture, history);
        assert.deepEqual(checkHistory(history).slice(0, 5), []);
      },
    },
  ],
  pause: [
    {
      name: 'an abort ends a call that gets no answer (kubernetes #44887, etcd3 #110, redlock #86)',
      async run(fixture) {
        const key = await fixture.enter(fixture.claim(fixture.name()));
        const resume = await fixture.store.pause?.();
        try {
          const reason = new Error('the caller gave up');
          const controller = new AbortController();
          const calls = callsOf(fixture, fixture.backends[1], key, controller.signal).map((call) => call());
          setTimeout(() => controller.abort(reason), 50);
          for (const one of await within(settleMs, Promise.allSettled(calls))) {
            assert.ok(one.status === 'rejected' && one.reason === reason);
          }
        } finally {
          await resume?.();
        }
        await fixture.untilAvailable(fixture.backends[1]);
        assert.equal(await fixture.renew(key, fixture.longTtlMs, fixture.backends[0]), true);
      },
    },
  ],
};

/**
 * Entries are made, renewed and left while all connections break; a caller that does not know its sequence number
 * leaves by its id.
 */
async function enterWhileBroken(fixture: ConformanceFixture, history: History): Promise<void> {
  const name = fixture.name();
  const claims = Array.from({ length: 12 }, () => fixture.claim(name));
  const one = async (claim: (typeof claims)[number], backend: LeaseBackend): Promise<void> => {
    await pause(Math.floor(claims.indexOf(claim) / 3) * 4);
    try {
      const key = await history.enter(backend, claim, { onlyIfHolds: false, signal: fixture.signal });
      assert.ok(key !== undefined);
      await history.renew(backend, [{ ...key, ttlMs: fixture.longTtlMs }], fixture.signal);
      await history.update(backend, key, 'updated', fixture.signal);
      await history.leave(backend, key, fixture.signal);
    } catch (error) {
      assert.ok(isUnavailable(error), `a broken connection is the code unavailable, not ${String(error)}`);
    }
  };
  const all = claims.map((claim, at) => one(claim, fixture.backends[at % 3] ?? fixture.backends[0]));
  await pause(6);
  await fixture.store.killConnections?.();
  await Promise.all(all);
  for (const backend of fixture.backends) await fixture.untilAvailable(backend);
  await history.list(fixture.backends[0], name, fixture.signal);
  for (const { id } of claims) await history.leave(fixture.backends[1], { name, id, sequence: 0n }, fixture.signal);
  assert.deepEqual(
    await history.list(fixture.backends[2], name, fixture.signal),
    [],
    'an entry came after it was left',
  );
}

function callsOf(fixture: ConformanceFixture, backend: LeaseBackend, key: EntryKey, signal: Signal) {
  const renewal = { ...key, ttlMs: fixture.longTtlMs };
  return [
    () => backend.enter(fixture.claim(key.name), { onlyIfHolds: false, signal }),
    () => backend.enter(fixture.claim(key.name), { onlyIfHolds: true, signal }),
    () => backend.list(key.name, signal),
    () => backend.renew([renewal], signal),
    () => backend.update(key, 'data', signal),
    () => backend.leave({ ...key, id: 'other' }, signal),
  ] as const;
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not settled within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
