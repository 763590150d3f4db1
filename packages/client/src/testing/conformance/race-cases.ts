import assert from 'node:assert/strict';
import { holders, queuePosition } from '../../backend/queue-position.ts';
import type { EntryKey, LeaseBackend } from '../../backend/lease-backend.ts';
import { pause } from './conformance-fixture.ts';
import type { ConformanceCase, ConformanceFixture } from './conformance-fixture.ts';
import { checkHistory } from './history-check.ts';
import { History } from './history.ts';
import type { SeededRandom } from './seeded-random.ts';

const contenders = 20;
/** A crowd all the same, where each look costs much. */
const fewContenders = 8;
const walkers = 6;
const walkMs = 1_500;
const walkSteps = 60;

/** Many at once, through several backends: what they did and saw is checked against the contract afterwards. */
export const raceCases: readonly ConformanceCase[] = [
  {
    name: '20 contenders that enter at once hold one after the other, in the order of their sequence numbers',
    async run(fixture) {
      const name = fixture.name();
      const claims = Array.from({ length: contenders }, () => fixture.claim(name));
      const keys = await Promise.all(claims.map((claim, at) => fixture.enter(claim, backendAt(fixture, at))));
      const inOrder = keys.toSorted((one, other) => (one.sequence < other.sequence ? -1 : 1));
      assert.equal(
        new Set(keys.map(({ sequence }) => sequence)).size,
        contenders,
        'two entries have one sequence number',
      );
      for (const [at, key] of inOrder.entries()) {
        const queue = await fixture.list(name, backendAt(fixture, at));
        assert.deepEqual(
          holders(queue).map(({ id }) => id),
          [key.id],
        );
        assert.equal(queue.length, contenders - at);
        assert.equal(await fixture.leave(key, backendAt(fixture, at + 1)), true);
      }
    },
  },
  {
    name: 'of 20 that enter at once, each only if it holds, as many do as there are permits',
    async run(fixture) {
      const name = fixture.name();
      const permits = 3;
      const entered = await Promise.all(
        Array.from({ length: contenders }, (_, at) => {
          return fixture.enterWith(fixture.claim(name, { mode: 'permit', permits }), backendAt(fixture, at), true);
        }),
      );
      const sequences = entered.flatMap(({ sequence }) => (sequence === undefined ? [] : [sequence]));
      assert.equal(sequences.length, permits);
      for (const backend of fixture.backends) {
        const queue = await fixture.list(name, backend);
        assert.deepEqual(new Set(queue.map(({ sequence }) => sequence)), new Set(sequences));
        assert.equal(holders(queue).length, permits);
      }
    },
  },
  {
    name: 'never do two contenders see themselves hold (etcd3 #176, etcd #11457, Curator #1137)',
    async run(fixture) {
      const name = fixture.name();
      const history = new History();
      const random = fixture.random('turns');
      const crowd = Math.max(fewContenders, fixture.rounds(contenders));
      let holding = 0;
      let turns = 0;
      const contend = async (backend: LeaseBackend): Promise<void> => {
        const claim = fixture.claim(name);
        const key = await history.enter(backend, claim, { onlyIfHolds: false, signal: fixture.signal });
        assert.ok(key !== undefined);
        await fixture.until('its turn comes', async () => {
          const queue = await history.list(backend, name, fixture.signal);
          return queuePosition(queue, { ...claim, sequence: key.sequence }).holds;
        });
        holding += 1;
        assert.equal(holding, 1, `${holding} hold at once`);
        await pause(random.below(3));
        turns += 1;
        holding -= 1;
        await history.leave(backend, key, fixture.signal);
      };
      await Promise.all(Array.from({ length: crowd }, (_, at) => contend(backendAt(fixture, at))));
      assert.equal(turns, crowd);
      expectNothingWrong(fixture, history);
    },
  },
  {
    name: 'whatever is done at once, no list or answer contradicts another',
    async run(fixture) {
      const history = new History();
      const names = [fixture.name(), fixture.name()];
      await Promise.all(Array.from({ length: walkers }, (_, at) => walk(fixture, history, at, names)));
      expectNothingWrong(fixture, history);
      for (const name of names)
        for (const backend of fixture.backends) await history.list(backend, name, fixture.signal);
      expectNothingWrong(fixture, history);
    },
  },
  {
    name: 'a renewal at the moment of its end is either in time or too late, for all readers',
    isWaiting: true,
    async run(fixture) {
      const history = new History();
      const races = Array.from({ length: 8 }, (_, at) => raceItsEnd(fixture, history, at));
      await Promise.all(races);
      expectNothingWrong(fixture, history);
    },
  },
];

/** A random client: it makes, renews and removes entries of its own, and lists all entries. */
async function walk(
  fixture: ConformanceFixture,
  history: History,
  number: number,
  names: readonly string[],
): Promise<void> {
  const backend = backendAt(fixture, number);
  const random = fixture.random(`walk ${number}`);
  const steps = fixture.rounds(walkSteps);
  const endMs = performance.now() + walkMs;
  const own: EntryKey[] = [];
  for (let step = 0; step < steps && performance.now() < endMs; step++) {
    const name = names[random.below(names.length)] ?? '';
    const key = own[random.below(own.length + 1)];
    const { signal } = fixture;
    if (key === undefined) {
      const ttlMs = random.below(3) === 0 ? fixture.shortTtlMs : fixture.longTtlMs;
      const claim = fixture.claim(name, { ttlMs, mode: random.below(4) === 0 ? 'shared' : 'exclusive' });
      const entered = await history.enter(backend, claim, { onlyIfHolds: random.below(4) === 0, signal });
      if (entered !== undefined) own.push(entered);
    } else {
      const deed = random.below(5);
      if (deed === 0) await history.update(backend, key, `step ${step}`, signal);
      else if (deed === 1) await history.leave(backend, key, signal);
      else if (deed === 2) await history.list(backend, key.name, signal);
      else await history.renew(backend, renewalsOf(own, fixture, random), signal);
      if (deed === 1 && random.below(2) === 0) own.splice(own.indexOf(key), 1);
    }
    await history.list(backend, name, signal);
  }
  for (const key of own) await history.leave(backend, key, fixture.signal);
}

function renewalsOf(keys: readonly EntryKey[], fixture: ConformanceFixture, random: SeededRandom) {
  return keys.map((key) => ({ ...key, ttlMs: random.below(2) === 0 ? fixture.shortTtlMs : fixture.longTtlMs }));
}

/** One is renewed just when its life is over, while others look, enter and renew it too. */
async function raceItsEnd(fixture: ConformanceFixture, history: History, number: number): Promise<void> {
  const name = fixture.name();
  const [mine, theirs, third] = [0, 1, 2].map((at) => backendAt(fixture, number + at));
  if (mine === undefined || theirs === undefined || third === undefined) return;
  const random = fixture.random(`the end of ${number}`);
  const sentMs = performance.now();
  const claim = fixture.claim(name, { ttlMs: fixture.shortTtlMs });
  const key = await history.enter(mine, claim, { onlyIfHolds: false, signal: fixture.signal });
  assert.ok(key !== undefined);
  await pause(sentMs + fixture.shortTtlMs - 10 - performance.now());
  const renew = async (backend: LeaseBackend): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) {
      await pause(random.below(8));
      // Short, so that a later turn finds it at its end once more.
      await history.renew(
        backend,
        [{ ...key, ttlMs: turn < 3 ? fixture.minTtlMs(10) : fixture.longTtlMs }],
        fixture.signal,
      );
    }
  };
  const read = async (backend: LeaseBackend): Promise<void> => {
    for (let turn = 0; turn < 8; turn++) await history.list(backend, name, fixture.signal);
  };
  const enter = async (backend: LeaseBackend): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) {
      await pause(random.below(10));
      await history.enter(backend, fixture.claim(name), { onlyIfHolds: turn !== 1, signal: fixture.signal });
    }
  };
  await Promise.all([renew(mine), renew(theirs), read(theirs), read(third), enter(third)]);
}

function backendAt(fixture: ConformanceFixture, at: number): LeaseBackend {
  return fixture.backends[at % fixture.backends.length] ?? fixture.backends[0];
}

function expectNothingWrong(fixture: ConformanceFixture, history: History): void {
  assert.ok(history.reads.length > 0);
  const wrong = checkHistory(history);
  assert.deepEqual(
    wrong.slice(0, 5),
    [],
    `${wrong.length} contradictions in ${history.reads.length} looks, seed ${fixture.seed}`,
  );
}
