import { describe, expect, inject, test } from 'vitest';
import type { Entered, Entry, EntryKey, LeaseBackend } from '../backend/lease-backend.ts';
import { memoryBackend } from '../memory/index.ts';
import { backendConformance, conformanceCases } from './backend-conformance.ts';
import { ConformanceFixture } from './conformance/conformance-fixture.ts';
import { closeCase } from './conformance/store-cases.ts';

type Breakage = (backend: LeaseBackend) => Partial<LeaseBackend>;

interface BrokenBackend {
  readonly what: string;
  /** A part of the name of the case that must fail. */
  readonly caughtBy: string;
  readonly breakIt: Breakage;
}

const hints = ['came', 'updated', 'left', 'expired'] as const;
/** A short limit, since a broken backend never sends the awaited event. */
const waitAtMostMs = 1_500;
/** So early that a machine that pauses for half a TTL still notices it. */
const early = 0.1;
const never = new AbortController().signal;
const all = [...conformanceCases({ hints }), closeCase];

/** Defects that real backends had, each made by breaking one promise of the memory backend. */
const broken: readonly BrokenBackend[] = [
  {
    what: 'restarts its counter when a queue is empty',
    caughtBy: 'sequence numbers grow on when all have left',
    breakIt: (backend) => ({
      async enter(claim, options) {
        const before = await backend.list(claim.name, options.signal);
        const entered = await backend.enter(claim, options);
        if (before.length > 0) return entered;
        return { sequence: 1n, entries: entered.entries.map((entry) => ({ ...entry, sequence: 1n })) };
      },
      leave: async (key, signal) => backend.leave({ ...key, sequence: 0n }, signal),
      list: async () => [],
    }),
  },
  {
    what: 'releases by the name alone',
    caughtBy: 'the late release of one that expired',
    breakIt: (backend) => ({
      async leave(key, signal) {
        const [first] = await backend.list(key.name, signal);
        return first !== undefined && backend.leave(first, signal);
      },
    }),
  },
  {
    what: 'releases by the id alone',
    caughtBy: 'leaving needs the name, the id and the sequence number',
    breakIt: (backend) => ({ leave: (key, signal) => backend.leave({ ...key, sequence: 0n }, signal) }),
  },
  {
    what: 'revives what has expired',
    caughtBy: 'an entry that was seen to have expired is never renewed',
    breakIt: reviving,
  },
  {
    what: 'revives what has expired, though another took its place',
    caughtBy: 'nor is one in whose place another was entered',
    breakIt: reviving,
  },
  {
    what: 'lists the queue in another order',
    caughtBy: 'the queue is in their order',
    breakIt: (backend) => ({ list: async (name, signal) => (await backend.list(name, signal)).toReversed() }),
  },
  {
    what: 'shows entries later than those behind them',
    caughtBy: 'no list or answer contradicts another',
    breakIt: (backend) => {
      const hiddenUntilMs = new Map<string, number>();
      return {
        async enter(claim, options) {
          const entered = await backend.enter(claim, options);
          if (hiddenUntilMs.size % 2 === 0) hiddenUntilMs.set(claim.id, performance.now() + 5);
          else hiddenUntilMs.set(claim.id, 0);
          await new Promise((resolve) => setTimeout(resolve, 2));
          return entered;
        },
        list: async (name, signal) => {
          const queue = await backend.list(name, signal);
          return queue.filter(({ id }) => (hiddenUntilMs.get(id) ?? 0) < performance.now());
        },
      };
    },
  },
  {
    what: 'lists from a copy that lags behind',
    caughtBy: 'a list shows all that was acknowledged before',
    breakIt: (backend) => {
      const copies = new Map<string, readonly Entry[]>();
      return {
        async list(name, signal) {
          const copy = copies.get(name) ?? [];
          copies.set(name, await backend.list(name, signal));
          return copy;
        },
      };
    },
  },
  {
    what: 'looks and enters in two steps',
    caughtBy: 'onlyIfHolds is one step',
    breakIt: (backend) => ({
      async enter(claim, options) {
        const entries = await backend.list(claim.name, options.signal);
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (options.onlyIfHolds && entries.length > 0) return { sequence: undefined, entries };
        return backend.enter(claim, { ...options, onlyIfHolds: false });
      },
    }),
  },
  {
    what: 'ends lives early',
    caughtBy: 'an entry lives for its ttl',
    breakIt: (backend) => ({
      enter: (claim, options) => backend.enter({ ...claim, ttlMs: claim.ttlMs * early }, options),
    }),
  },
  {
    what: 'ends lives early after a renewal',
    caughtBy: 'a renewal makes it live for the ttl',
    breakIt: (backend) => ({
      renew: (renewals, signal) =>
        backend.renew(
          renewals.map((renewal) => ({ ...renewal, ttlMs: renewal.ttlMs * early })),
          signal,
        ),
    }),
  },
  {
    what: "goes by the client's clock",
    caughtBy: 'a client whose wall clock',
    breakIt: (backend) => {
      const endsAtMs = new Map<string, number>();
      return {
        enter(claim, options) {
          endsAtMs.set(claim.id, Date.now() + claim.ttlMs);
          return backend.enter(claim, options);
        },
        list: async (name, signal) => {
          const queue = await backend.list(name, signal);
          return queue.filter(({ id }) => (endsAtMs.get(id) ?? 0) > Date.now());
        },
      };
    },
  },
  {
    what: 'lengthens a life by an update',
    caughtBy: 'an update leaves its life as it is',
    breakIt: (backend) => ({
      async update(key, data, signal) {
        await backend.renew([{ ...key, ttlMs: 60_000 }], signal);
        return backend.update(key, data, signal);
      },
      list: async (name, signal) => backend.list(name, signal),
    }),
  },
  {
    what: 'answers renewals in another order',
    caughtBy: 'renewals of many entries are answered one by one',
    breakIt: (backend) => ({
      renew: async (renewals, signal) => (await backend.renew(renewals, signal)).toReversed(),
    }),
  },
  {
    what: 'takes one bad renewal for a failure of all',
    caughtBy: 'renewals of many entries are answered one by one',
    breakIt: (backend) => ({
      async renew(renewals, signal) {
        const flags = await backend.renew(renewals, signal);
        return flags.map(() => flags.every(Boolean));
      },
    }),
  },
  {
    what: 'does not tell names apart by case',
    caughtBy: 'names and ids are told apart',
    breakIt: (backend) => ({
      enter: (claim, options) => backend.enter({ ...claim, name: claim.name.toLowerCase() }, options),
      list: (name, signal) => backend.list(name.toLowerCase(), signal),
    }),
  },
  {
    what: 'enters twice when it is not sure',
    caughtBy: 'no list or answer contradicts another',
    breakIt: (backend) => ({
      async enter(claim, options) {
        if (!options.onlyIfHolds) await backend.enter(claim, options);
        return backend.enter(claim, options);
      },
    }),
  },
  {
    what: 'waits for its predecessor only',
    caughtBy: 'a waiter in the middle that leaves',
    breakIt: (backend) => ({
      list: async (name, signal) => (await backend.list(name, signal)).slice(-1),
    }),
  },
  { what: 'loses hints of an expiry', caughtBy: 'hints of an entry that expired', breakIt: () => deaf },
  { what: 'loses hints of an update', caughtBy: 'hints of data that changed', breakIt: deafAfter('update') },
  { what: 'loses hints of a release', caughtBy: 'hints of an entry that left', breakIt: deafAfter('leave') },
  {
    what: 'goes on when the signal has aborted',
    caughtBy: 'is aborted already',
    breakIt: (backend) => ({ list: (name) => backend.list(name, never) }),
  },
  { what: 'works when it is closed', caughtBy: 'a closed backend', breakIt: () => ({ close: async () => undefined }) },
];

const deaf: Partial<LeaseBackend> = { watch: () => ({ close: () => undefined }) };

function deafAfter(method: 'update' | 'leave'): Breakage {
  return (backend) => {
    let isDeaf = false;
    return {
      watch: (name, onChange) => backend.watch(name, () => (isDeaf ? undefined : onChange())),
      enter(claim, options): Promise<Entered> {
        isDeaf = false;
        return backend.enter(claim, options);
      },
      [method](key: EntryKey, ...others: [never, never]) {
        isDeaf = true;
        return backend[method](key, ...others);
      },
    };
  };
}

function reviving(backend: LeaseBackend): Partial<LeaseBackend> {
  return { renew: async (renewals) => renewals.map(() => true), list: (name, signal) => backend.list(name, signal) };
}

describe('backendConformance', () => {
  const caught = broken.map((one) => ({ ...one, found: all.filter(({ name }) => name.includes(one.caughtBy)) }));
  const isWaiting = ({ found: [one] }: (typeof caught)[number]): boolean => one?.isWaiting === true;
  // Those that wait do so at the same time, as in the suite. Tests are that when nothing stands between them.
  for (const each of [...caught.filter(isWaiting), ...caught.filter((one) => !isWaiting(one))]) {
    const { what, caughtBy, breakIt, found } = each;
    const [one = closeCase] = found;
    test(`catches a backend that ${what}`, { concurrent: isWaiting(each) }, async () => {
      expect(found.length, `one case is called "${caughtBy}"`).toBe(1);
      await expect(runOn(breakIt, one)).rejects.toMatchObject({ code: 'ERR_ASSERTION' });
    });
  }

  test('has every case name only once', () => {
    const names = all.map(({ name }) => name);
    expect(names.filter((name, at) => names.indexOf(name) < at)).toEqual([]);
  });

  test('registers every case with the given framework, and closes its backends', async () => {
    const tests = new Map<string, () => Promise<void>>();
    let disposed = 0;
    let after = async (): Promise<void> => undefined;
    backendConformance(() => ({ open: () => memoryBackend(), dispose: async () => void (disposed += 1) }), {
      framework: {
        describe: (_, body) => body(),
        test: (name, body) => tests.set(name, body),
        afterAll: (body) => (after = body),
      },
      hints,
    });
    expect([...tests.keys()]).toStrictEqual(all.map(({ name }) => name));
    await tests.get('an empty queue is empty')?.();
    await after();
    expect(disposed).toBe(1);
  });

  test('reports what to do where there are no global test functions', () => {
    expect(() => backendConformance(() => expect.unreachable())).toThrow(/give them as the option framework/);
  });
});

async function runOn(breakIt: Breakage, { run }: (typeof all)[number]): Promise<void> {
  const whole = memoryBackend();
  const backend = { kind: whole.kind, limits: whole.limits, pollIntervalMs: whole.pollIntervalMs };
  const methods = ['enter', 'list', 'renew', 'leave', 'update', 'watch', 'close'] as const;
  const bound = Object.fromEntries(methods.map((method) => [method, whole[method].bind(whole)]));
  const one = { ...backend, ...bound, ...breakIt(whole) } as LeaseBackend;
  const store = { open: () => one, dispose: () => whole.close() };
  const fixture = await ConformanceFixture.over(store, { waitAtMostMs, seed: inject('seed') });
  await run(fixture).finally(() => fixture.dispose());
}
