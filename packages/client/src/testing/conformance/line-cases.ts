import assert from 'node:assert/strict';
import { holders, standing } from '../../backend/standing.ts';
import type { Claim, Entry, EntryMode } from '../../backend/lease-backend.ts';
import { BackendError } from '../../errors/backend-error.ts';
import { contains } from './conformance-lab.ts';
import type { ConformanceCase, ConformanceLab } from './conformance-lab.ts';
import { longNames, similarNames } from './similar-names.ts';

const modes: readonly EntryMode[] = ['exclusive', 'shared', 'permit', 'member'];

/** Entering and listing: what an entry shows, its ticket, and who may enter at all. */
export const lineCases: readonly ConformanceCase[] = [
  {
    name: 'an entry shows all that was claimed, to every backend',
    async run(lab) {
      for (const mode of modes) {
        const name = lab.name();
        const data = `{"of":"${mode}", 'quoted' \\ \n\tÄ😀`;
        const claim = lab.claim(name, { mode, permits: mode === 'permit' ? 7 : 1, data, holder: 'pod-7 "Ä" 😀' });
        const { ticket, entries } = await lab.enterWith(claim, lab.backends[0], false);
        assert.ok(ticket !== undefined && ticket > 0n, 'a ticket is greater than 0');
        for (const line of [entries, ...(await Promise.all(lab.backends.map((backend) => lab.list(name, backend))))]) {
          assert.deepEqual(line.map(withoutHint), [{ ...claim, ticket }]);
          checkHint(line[0]);
        }
      }
    },
  },
  {
    name: 'an empty line is empty',
    async run(lab) {
      assert.deepEqual(await lab.list(lab.name()), []);
    },
  },
  {
    name: 'names and ids are told apart to the letter',
    async run(lab) {
      const name = lab.name();
      await areApart(lab, similarNames(name));
      const key = await lab.enter(lab.claim(name, { id: `Id-${name}` }));
      assert.equal(await lab.leave({ ...key, id: key.id.toLowerCase() }), false);
      assert.equal(await lab.leave({ ...key, id: `${key.id} ` }), false);
    },
  },
  {
    name: 'names as long as its limits say are told apart by their last byte, in any script',
    async run(lab) {
      await areApart(lab, longNames(lab.name(), lab.backends[0].limits.maxNameBytes));
    },
  },
  {
    name: 'names, data and lives as long as its limits say are taken',
    async run(lab) {
      const { maxNameBytes, maxDataBytes, minTtlMs, maxTtlMs } = lab.backends[0].limits;
      const letters = lab.name();
      const name = `${letters}${'ä'.repeat(Math.floor((maxNameBytes - letters.length) / 2))}`;
      const data = 'ä'.repeat(Math.floor(maxDataBytes / 2));
      const key = await lab.enter(lab.claim(name, { data, ttlMs: maxTtlMs }));
      assert.deepEqual((await lab.list(name, lab.backends[1])).map(withoutHint), [
        { ...lab.claim(name), ...key, data, ttlMs: maxTtlMs },
      ]);
      assert.equal(await lab.renew(key, maxTtlMs), true);
      assert.equal(await lab.leave(key), true);
      await lab.enter(lab.claim(name, { ttlMs: minTtlMs }));
    },
  },
  {
    name: 'a character that the store cannot keep is refused, not changed',
    async run(lab) {
      const name = lab.name();
      const claim = lab.claim(name, { data: 'before\u0000after' });
      try {
        await lab.enter(claim);
        assert.equal((await lab.list(name))[0]?.data, claim.data);
      } catch (error) {
        assert.ok(error instanceof BackendError && error.backendCode === 'refused', String(error));
        assert.deepEqual(await lab.list(name), []);
      }
    },
  },
  {
    name: 'tickets grow from entry to entry, through any backend, and the line is in their order',
    async run(lab) {
      const name = lab.name();
      const tickets: bigint[] = [];
      for (let turn = 0; turn < 9; turn++) {
        const backend = lab.backends[turn % lab.backends.length];
        const { ticket, entries } = await lab.enterWith(lab.claim(name), backend ?? lab.backends[0], false);
        tickets.push(ticket ?? 0n);
        assert.deepEqual(ticketsOf(entries), tickets, 'enter gives the whole line, with its own entry at the end');
      }
      for (const backend of lab.backends) assert.deepEqual(ticketsOf(await lab.list(name, backend)), tickets);
      assertGrowing(tickets);
    },
  },
  {
    name: "tickets grow on when all have left (Misk's release ABA, ShedLock #27, simple-redis-mutex #15)",
    async run(lab) {
      const name = lab.name();
      const tickets: bigint[] = [];
      for (let turn = 0; turn < 4; turn++) {
        const key = await lab.enter(lab.claim(name), lab.backends[turn % 2]);
        assert.equal(await lab.leave(key, lab.backends[turn % 3]), true);
        assert.deepEqual(await lab.list(name), []);
        tickets.push(key.ticket);
      }
      assertGrowing(tickets);
    },
  },
  {
    name: "tickets grow on when all have expired and for a backend that was opened later (Misk's release ABA)",
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      const first = await lab.enter(lab.claim(name, { ttlMs: lab.shortTtlMs }));
      await lab.untilGone(first);
      const second = await lab.enter(lab.claim(name), await lab.open());
      assertGrowing([first.ticket, second.ticket]);
    },
  },
  {
    name: 'names have lines of their own',
    async run(lab) {
      const [one, other] = [lab.name(), lab.name()];
      const key = await lab.enter(lab.claim(one));
      const { entries } = await lab.enterWith(lab.claim(other), lab.backends[1], true);
      assert.equal(entries.length, 1);
      assert.ok(contains(await lab.list(one), key));
    },
  },
  {
    name: 'onlyIfHolds enters what holds at once and nothing else, in every mode',
    async run(lab) {
      const permitsOf = (mode: EntryMode): number => (mode === 'permit' ? 2 : 1);
      for (const before of modes) {
        for (const mode of modes) {
          const name = lab.name();
          await lab.enter(lab.claim(name, { mode: before, permits: permitsOf(before) }));
          for (let turn = 0; turn < 2; turn++) {
            await checkOnlyIfHolds(lab, lab.claim(name, { mode, permits: permitsOf(mode) }));
          }
        }
      }
    },
  },
  {
    name: 'onlyIfHolds goes by the whole line, whoever stands in it',
    async run(lab) {
      const random = lab.random('the whole line');
      const any = (): Pick<Entry, 'mode' | 'permits'> => {
        const mode = modes[random.below(modes.length)] ?? 'exclusive';
        return { mode, permits: mode === 'permit' ? 1 + random.below(3) : 1 };
      };
      for (let round = 0; round < lab.rounds(20); round++) {
        const name = lab.name();
        const before = Array.from({ length: random.below(5) }, any);
        for (const one of before) await lab.enter(lab.claim(name, one), lab.backends[1]);
        await checkOnlyIfHolds(lab, lab.claim(name, any()));
      }
    },
  },
  {
    name: 'onlyIfHolds is one step: of 20 at once one enters (ShedLock #3577)',
    async run(lab) {
      for (let round = 0; round < lab.rounds(15); round++) {
        const name = lab.name();
        const claims = Array.from({ length: 20 }, () => lab.claim(name));
        const all = await Promise.all(
          claims.map((claim, at) => lab.enterWith(claim, lab.backends[at % 3] ?? lab.backends[0], true)),
        );
        const entered = all.filter(({ ticket }) => ticket !== undefined);
        assert.equal(entered.length, 1, `${entered.length} of 20 entered where one may hold`);
        assert.equal((await lab.list(name, lab.backends[2])).length, 1);
      }
    },
  },
  {
    name: 'onlyIfHolds is not kept out by one whose life has ended',
    isWaiting: true,
    async run(lab) {
      const name = lab.name();
      const first = await lab.enter(lab.claim(name, { ttlMs: lab.shortTtlMs }));
      await lab.until('its life has ended', async () => {
        const { ticket } = await lab.enterWith(lab.claim(name), lab.backends[1], true);
        return ticket !== undefined && ticket > first.ticket;
      });
      assert.equal(await lab.renew(first, lab.longTtlMs), false);
    },
  },
  {
    name: 'a waiter in the middle that leaves lets nobody past (etcd3 #176)',
    async run(lab) {
      const name = lab.name();
      const [first, middle, last] = [
        await lab.enter(lab.claim(name), lab.backends[0]),
        await lab.enter(lab.claim(name), lab.backends[1]),
        await lab.enter(lab.claim(name), lab.backends[2]),
      ];
      assert.equal(await lab.leave(middle, lab.backends[1]), true);
      const line = await lab.list(name, lab.backends[2]);
      assert.deepEqual(ticketsOf(line), [first.ticket, last.ticket]);
      assert.deepEqual(ticketsOf(holders(line)), [first.ticket]);
    },
  },
];

/** One enters under each name, and is alone there. */
async function areApart(lab: ConformanceLab, names: readonly string[]): Promise<void> {
  const keys = await Promise.all(names.map((name, at) => lab.enter(lab.claim(name), lab.backends[at % 3])));
  for (const [at, key] of keys.entries()) {
    const line = await lab.list(key.name, lab.backends[(at + 1) % 3]);
    assert.deepEqual(
      line.map(({ name, id }) => [name, id]),
      [[key.name, key.id]],
    );
  }
  assert.deepEqual(
    await lab.backends[1].renew(
      keys.map((key) => ({ ...key, ttlMs: lab.longTtlMs })),
      lab.signal,
    ),
    keys.map(() => true),
  );
}

async function checkOnlyIfHolds(lab: ConformanceLab, claim: Claim): Promise<void> {
  const line = await lab.list(claim.name);
  const { holds } = standing(line, { ...claim, ticket: 2n ** 62n });
  const { ticket, entries } = await lab.enterWith(claim, lab.backends[1], true);
  const words = line.map(({ mode, permits }) => `${mode} ${permits}`).join(', ');
  assert.equal(ticket !== undefined, holds, `${claim.mode} ${claim.permits} behind ${words}`);
  assert.deepEqual(ticketsOf(entries), ticketsOf(await lab.list(claim.name)), 'the answer shows the line');
  assert.deepEqual(ticketsOf(entries).slice(0, line.length), ticketsOf(line), 'the answer shows who is there');
  assert.equal(entries.length, line.length + (holds ? 1 : 0));
}

function withoutHint({ expiresInMs: _hint, ...entry }: Entry): Omit<Entry, 'expiresInMs'> {
  return entry;
}

function checkHint(entry: Entry | undefined): void {
  assert.ok(entry !== undefined);
  const { expiresInMs, ttlMs } = entry;
  assert.ok(expiresInMs === undefined || (expiresInMs > 0 && expiresInMs <= ttlMs + 1_000), `${expiresInMs}`);
}

function ticketsOf(entries: readonly Entry[]): readonly bigint[] {
  return entries.map(({ ticket }) => ticket);
}

function assertGrowing(tickets: readonly bigint[]): void {
  for (const [at, ticket] of tickets.entries()) {
    assert.ok(at === 0 || ticket > (tickets[at - 1] ?? 0n), `tickets do not grow: ${tickets.join(', ')}`);
  }
}
