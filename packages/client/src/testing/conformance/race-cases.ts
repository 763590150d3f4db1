import assert from 'node:assert/strict';
import { holders, standing } from '../../backend/standing.ts';
import type { EntryKey, LeaseBackend } from '../../backend/lease-backend.ts';
import { pause } from './conformance-lab.ts';
import type { ConformanceCase, ConformanceLab } from './conformance-lab.ts';
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
    name: '20 contenders that enter at once hold one after the other, in the order of their tickets',
    async run(lab) {
      const name = lab.name();
      const claims = Array.from({ length: contenders }, () => lab.claim(name));
      const keys = await Promise.all(claims.map((claim, at) => lab.enter(claim, backendAt(lab, at))));
      const inOrder = keys.toSorted((one, other) => (one.ticket < other.ticket ? -1 : 1));
      assert.equal(new Set(keys.map(({ ticket }) => ticket)).size, contenders, 'two have one ticket');
      for (const [at, key] of inOrder.entries()) {
        const line = await lab.list(name, backendAt(lab, at));
        assert.deepEqual(
          holders(line).map(({ id }) => id),
          [key.id],
        );
        assert.equal(line.length, contenders - at);
        assert.equal(await lab.leave(key, backendAt(lab, at + 1)), true);
      }
    },
  },
  {
    name: 'of 20 that enter at once, each only if it holds, as many do as there are permits',
    async run(lab) {
      const name = lab.name();
      const permits = 3;
      const entered = await Promise.all(
        Array.from({ length: contenders }, (_, at) => {
          return lab.enterWith(lab.claim(name, { mode: 'permit', permits }), backendAt(lab, at), true);
        }),
      );
      const tickets = entered.flatMap(({ ticket }) => (ticket === undefined ? [] : [ticket]));
      assert.equal(tickets.length, permits);
      for (const backend of lab.backends) {
        const line = await lab.list(name, backend);
        assert.deepEqual(new Set(line.map(({ ticket }) => ticket)), new Set(tickets));
        assert.equal(holders(line).length, permits);
      }
    },
  },
  {
    name: 'never do two contenders see themselves hold (etcd3 #176, etcd #11457, Curator #1137)',
    async run(lab) {
      const name = lab.name();
      const history = new History();
      const random = lab.random('turns');
      const crowd = Math.max(fewContenders, lab.rounds(contenders));
      let holding = 0;
      let turns = 0;
      const contend = async (backend: LeaseBackend): Promise<void> => {
        const claim = lab.claim(name);
        const key = await history.enter(backend, claim, { onlyIfHolds: false, signal: lab.signal });
        assert.ok(key !== undefined);
        await lab.until('its turn comes', async () => {
          const line = await history.list(backend, name, lab.signal);
          return standing(line, { ...claim, ticket: key.ticket }).holds;
        });
        holding += 1;
        assert.equal(holding, 1, `${holding} hold at once`);
        await pause(random.below(3));
        turns += 1;
        holding -= 1;
        await history.leave(backend, key, lab.signal);
      };
      await Promise.all(Array.from({ length: crowd }, (_, at) => contend(backendAt(lab, at))));
      assert.equal(turns, crowd);
      expectNothingWrong(lab, history);
    },
  },
  {
    name: 'whatever is done at once, no list or answer contradicts another',
    async run(lab) {
      const history = new History();
      const names = [lab.name(), lab.name()];
      await Promise.all(Array.from({ length: walkers }, (_, at) => walk(lab, history, at, names)));
      expectNothingWrong(lab, history);
      for (const name of names) for (const backend of lab.backends) await history.list(backend, name, lab.signal);
      expectNothingWrong(lab, history);
    },
  },
  {
    name: 'a renewal at the moment of its end is either in time or too late, for everybody',
    isWaiting: true,
    async run(lab) {
      const history = new History();
      const races = Array.from({ length: 8 }, (_, at) => raceItsEnd(lab, history, at));
      await Promise.all(races);
      expectNothingWrong(lab, history);
    },
  },
];

/** What a random client does for a while: entries of its own, and looks at everybody's. */
async function walk(lab: ConformanceLab, history: History, number: number, names: readonly string[]): Promise<void> {
  const backend = backendAt(lab, number);
  const random = lab.random(`walk ${number}`);
  const steps = lab.rounds(walkSteps);
  const endMs = performance.now() + walkMs;
  const own: EntryKey[] = [];
  for (let step = 0; step < steps && performance.now() < endMs; step++) {
    const name = names[random.below(names.length)] ?? '';
    const key = own[random.below(own.length + 1)];
    const { signal } = lab;
    if (key === undefined) {
      const ttlMs = random.below(3) === 0 ? lab.shortTtlMs : lab.longTtlMs;
      const claim = lab.claim(name, { ttlMs, mode: random.below(4) === 0 ? 'shared' : 'exclusive' });
      const entered = await history.enter(backend, claim, { onlyIfHolds: random.below(4) === 0, signal });
      if (entered !== undefined) own.push(entered);
    } else {
      const deed = random.below(5);
      if (deed === 0) await history.update(backend, key, `step ${step}`, signal);
      else if (deed === 1) await history.leave(backend, key, signal);
      else if (deed === 2) await history.list(backend, key.name, signal);
      else await history.renew(backend, renewalsOf(own, lab, random), signal);
      if (deed === 1 && random.below(2) === 0) own.splice(own.indexOf(key), 1);
    }
    await history.list(backend, name, signal);
  }
  for (const key of own) await history.leave(backend, key, lab.signal);
}

function renewalsOf(keys: readonly EntryKey[], lab: ConformanceLab, random: SeededRandom) {
  return keys.map((key) => ({ ...key, ttlMs: random.below(2) === 0 ? lab.shortTtlMs : lab.longTtlMs }));
}

/** One is renewed just when its life is over, while others look, enter and renew it too. */
async function raceItsEnd(lab: ConformanceLab, history: History, number: number): Promise<void> {
  const name = lab.name();
  const [mine, theirs, third] = [0, 1, 2].map((at) => backendAt(lab, number + at));
  if (mine === undefined || theirs === undefined || third === undefined) return;
  const random = lab.random(`the end of ${number}`);
  const sentMs = performance.now();
  const claim = lab.claim(name, { ttlMs: lab.shortTtlMs });
  const key = await history.enter(mine, claim, { onlyIfHolds: false, signal: lab.signal });
  assert.ok(key !== undefined);
  await pause(sentMs + lab.shortTtlMs - 10 - performance.now());
  const renew = async (backend: LeaseBackend): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) {
      await pause(random.below(8));
      // Short, so that a later turn finds it at its end once more.
      await history.renew(backend, [{ ...key, ttlMs: turn < 3 ? lab.minTtlMs(10) : lab.longTtlMs }], lab.signal);
    }
  };
  const look = async (backend: LeaseBackend): Promise<void> => {
    for (let turn = 0; turn < 8; turn++) await history.list(backend, name, lab.signal);
  };
  const enter = async (backend: LeaseBackend): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) {
      await pause(random.below(10));
      await history.enter(backend, lab.claim(name), { onlyIfHolds: turn !== 1, signal: lab.signal });
    }
  };
  await Promise.all([renew(mine), renew(theirs), look(theirs), look(third), enter(third)]);
}

function backendAt(lab: ConformanceLab, at: number): LeaseBackend {
  return lab.backends[at % lab.backends.length] ?? lab.backends[0];
}

function expectNothingWrong(lab: ConformanceLab, history: History): void {
  assert.ok(history.looks.length > 0);
  const wrong = checkHistory(history);
  assert.deepEqual(
    wrong.slice(0, 5),
    [],
    `${wrong.length} contradictions in ${history.looks.length} looks, seed ${lab.seed}`,
  );
}
