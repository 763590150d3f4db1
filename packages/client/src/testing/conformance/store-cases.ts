import assert from 'node:assert/strict';
import type { EntryKey, LeaseBackend } from '../../backend/lease-backend.ts';
import { BackendError } from '../../errors/backend-error.ts';
import type { Signal } from '../../time/signal.ts';
import { contains, isUnavailable, pause } from './conformance-lab.ts';
import type { ConformanceCase, ConformanceLab } from './conformance-lab.ts';
import type { StoreHook } from './conformance-store.ts';
import { checkHistory } from './history-check.ts';
import { History } from './history.ts';

const settleMs = 5_000;
const killRounds = 4;

/** Signals and limits, which every backend has. */
export const callCases: readonly ConformanceCase[] = [
  {
    name: 'its limits make sense, and it polls',
    async run(lab) {
      for (const { kind, limits, pollIntervalMs } of lab.backends) {
        assert.match(kind, /^[a-z0-9-]+$/);
        assert.ok(limits.minTtlMs > 0 && limits.maxTtlMs > limits.minTtlMs);
        assert.ok(limits.maxNameBytes >= 512 && limits.maxDataBytes >= 1_024, 'room for a name and some data');
        assert.ok(pollIntervalMs > 0 && Number.isFinite(pollIntervalMs), 'a hint may be lost, so waiters poll');
      }
    },
  },
  {
    name: 'a call whose signal is aborted already rejects with its reason',
    async run(lab) {
      const key = await lab.enter(lab.claim(lab.name()));
      const reason = new Error('the caller gave up');
      const signal = AbortSignal.abort(reason);
      for (const call of callsOf(lab, lab.backends[1], key, signal)) await assert.rejects(call(), reason);
    },
  },
  {
    name: 'a call whose signal aborts on the way settles soon, with its reason or with an answer',
    async run(lab) {
      const key = await lab.enter(lab.claim(lab.name()));
      const reason = new Error('the caller gave up');
      for (let turn = 0; turn < 5; turn++) {
        const controller = new AbortController();
        const calls = callsOf(lab, lab.backends[1], key, controller.signal).map((call) => call());
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
  async run(lab) {
    const key = await lab.enter(lab.claim(lab.name()));
    const watch = lab.backends[0].watch(key.name, () => undefined);
    for (const backend of lab.backends) await backend.close();
    for (const backend of lab.backends) await backend.close();
    watch.close();
    for (const call of callsOf(lab, lab.backends[0], key, lab.signal)) {
      await assert.rejects(
        call(),
        (error) => error instanceof BackendError && error.backendCode === 'closed' && error.message.length > 10,
      );
    }
    lab.backends[0].watch(key.name, () => undefined).close();
  },
};

export const hookCases: Readonly<Record<StoreHook, readonly ConformanceCase[]>> = {
  restart: [
    {
      name: 'after a restart tickets grow on, who is there stays, and who was gone stays gone (etcd3 #158)',
      async run(lab) {
        const name = lab.name();
        const gone = await lab.enter(lab.claim(name));
        const left = await lab.enter(lab.claim(lab.name()));
        await lab.leave(gone);
        await lab.leave(left);
        const key = await lab.enter(lab.claim(name));
        await lab.store.restart?.();
        for (const backend of lab.backends) await lab.untilAvailable(backend);
        const again = await lab.enter(lab.claim(name), lab.backends[1]);
        const empty = await lab.enter(lab.claim(left.name), lab.backends[2]);
        assert.ok(again.ticket > key.ticket && empty.ticket > left.ticket, 'tickets began anew');
        const line = await lab.list(name, lab.backends[2]);
        assert.ok(line.length === 2 && contains(line, key) && contains(line, again));
        assert.equal(await lab.renew(gone, lab.longTtlMs), false);
        assert.equal(await lab.renew(key, lab.longTtlMs), true);
      },
    },
  ],
  killConnections: [
    {
      name: 'what was asked for on a connection that broke was done once or not at all (redlock #369)',
      async run(lab) {
        const history = new History();
        for (let round = 0; round < lab.rounds(killRounds); round++) await enterWhileBroken(lab, history);
        assert.deepEqual(checkHistory(history).slice(0, 5), []);
      },
    },
  ],
  pause: [
    {
      name: 'an abort ends a call that gets no answer (kubernetes #44887, etcd3 #110, redlock #86)',
      async run(lab) {
        const key = await lab.enter(lab.claim(lab.name()));
        const resume = await lab.store.pause?.();
        try {
          const reason = new Error('the caller gave up');
          const controller = new AbortController();
          const calls = callsOf(lab, lab.backends[1], key, controller.signal).map((call) => call());
          setTimeout(() => controller.abort(reason), 50);
          for (const one of await within(settleMs, Promise.allSettled(calls))) {
            assert.ok(one.status === 'rejected' && one.reason === reason);
          }
        } finally {
          await resume?.();
        }
        await lab.untilAvailable(lab.backends[1]);
        assert.equal(await lab.renew(key, lab.longTtlMs, lab.backends[0]), true);
      },
    },
  ],
};

/** Entries are made, renewed and left while all connections break; who does not know its ticket leaves by its id. */
async function enterWhileBroken(lab: ConformanceLab, history: History): Promise<void> {
  const name = lab.name();
  const claims = Array.from({ length: 12 }, () => lab.claim(name));
  const one = async (claim: (typeof claims)[number], backend: LeaseBackend): Promise<void> => {
    await pause(Math.floor(claims.indexOf(claim) / 3) * 4);
    try {
      const key = await history.enter(backend, claim, { onlyIfHolds: false, signal: lab.signal });
      assert.ok(key !== undefined);
      await history.renew(backend, [{ ...key, ttlMs: lab.longTtlMs }], lab.signal);
      await history.update(backend, key, 'updated', lab.signal);
      await history.leave(backend, key, lab.signal);
    } catch (error) {
      assert.ok(isUnavailable(error), `a broken connection is the code unavailable, not ${String(error)}`);
    }
  };
  const all = claims.map((claim, at) => one(claim, lab.backends[at % 3] ?? lab.backends[0]));
  await pause(6);
  await lab.store.killConnections?.();
  await Promise.all(all);
  for (const backend of lab.backends) await lab.untilAvailable(backend);
  await history.list(lab.backends[0], name, lab.signal);
  for (const { id } of claims) await history.leave(lab.backends[1], { name, id, ticket: 0n }, lab.signal);
  assert.deepEqual(await history.list(lab.backends[2], name, lab.signal), [], 'an entry came after it was left');
}

function callsOf(lab: ConformanceLab, backend: LeaseBackend, key: EntryKey, signal: Signal) {
  const renewal = { ...key, ttlMs: lab.longTtlMs };
  return [
    () => backend.enter(lab.claim(key.name), { onlyIfHolds: false, signal }),
    () => backend.enter(lab.claim(key.name), { onlyIfHolds: true, signal }),
    () => backend.list(key.name, signal),
    () => backend.renew([renewal], signal),
    () => backend.update(key, 'data', signal),
    () => backend.leave({ ...key, id: 'nobody' }, signal),
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
