import assert from 'node:assert/strict';
import { holders, queuePosition } from '../../backend/queue-position.ts';
import type { Claim, Entry, EntryMode } from '../../backend/lease-backend.ts';
import { BackendError } from '../../errors/backend-error.ts';
import { contains } from './conformance-fixture.ts';
import type { ConformanceCase, ConformanceFixture } from './conformance-fixture.ts';
import { longNames, similarNames } from './similar-names.ts';

const modes: readonly EntryMode[] = ['exclusive', 'shared', 'permit', 'member'];

/** Entering and listing: what an entry shows, its sequence number, and when `onlyIfHolds` enters it. */
export const queueCases: readonly ConformanceCase[] = [
  {
    name: 'an entry shows all that was claimed, to every backend',
    async run(fixture) {
      for (const mode of modes) {
        const name = fixture.name();
        const data = `{"of":"${mode}", 'quoted' \\ \n\tÄ😀`;
        const claim = fixture.claim(name, { mode, permits: mode === 'permit' ? 7 : 1, data, holder: 'pod-7 "Ä" 😀' });
        const { sequence, entries } = await fixture.enterWith(claim, fixture.backends[0], false);
        assert.ok(sequence !== undefined && sequence > 0n, 'a sequence number is greater than 0');
        for (const queue of [
          entries,
          ...(await Promise.all(fixture.backends.map((backend) => fixture.list(name, backend)))),
        ]) {
          assert.deepEqual(queue.map(withoutHint), [{ ...claim, sequence }]);
          checkHint(queue[0]);
        }
      }
    },
  },
  {
    name: 'an empty queue is empty',
    async run(fixture) {
      assert.deepEqual(await fixture.list(fixture.name()), []);
    },
  },
  {
    name: 'names and ids are told apart to the letter',
    async run(fixture) {
      const name = fixture.name();
      await areApart(fixture, similarNames(name));
      const key = await fixture.enter(fixture.claim(name, { id: `Id-${name}` }));
      assert.equal(await fixture.leave({ ...key, id: key.id.toLowerCase() }), false);
      assert.equal(await fixture.leave({ ...key, id: `${key.id} ` }), false);
    },
  },
  {
    name: 'names as long as its limits say are told apart by their last byte, in any script',
    async run(fixture) {
      await areApart(fixture, longNames(fixture.name(), fixture.backends[0].limits.maxNameBytes));
    },
  },
  {
    name: 'names, data and lives as long as its limits say are taken',
    async run(fixture) {
      const { maxNameBytes, maxDataBytes, minTtlMs, maxTtlMs } = fixture.backends[0].limits;
      const letters = fixture.name();
      const name = `${letters}${'ä'.repeat(Math.floor((maxNameBytes - letters.length) / 2))}`;
      const data = 'ä'.repeat(Math.floor(maxDataBytes / 2));
      const key = await fixture.enter(fixture.claim(name, { data, ttlMs: maxTtlMs }));
      assert.deepEqual((await fixture.list(name, fixture.backends[1])).map(withoutHint), [
        { ...fixture.claim(name), ...key, data, ttlMs: maxTtlMs },
      ]);
      assert.equal(await fixture.renew(key, maxTtlMs), true);
      assert.equal(await fixture.leave(key), true);
      await fixture.enter(fixture.claim(name, { ttlMs: minTtlMs }));
    },
  },
  {
    name: 'a character that the store cannot keep is refused, not changed',
    async run(fixture) {
      const name = fixture.name();
      const claim = fixture.claim(name, { data: 'before\u0000after' });
      try {
        await fixture.enter(claim);
        assert.equal((await fixture.list(name))[0]?.data, claim.data);
      } catch (error) {
        assert.ok(error instanceof BackendError && error.backendCode === 'refused', String(error));
        assert.deepEqual(await fixture.list(name), []);
      }
    },
  },
  {
    name: 'sequence numbers grow from entry to entry, through any backend, and the queue is in their order',
    async run(fixture) {
      const name = fixture.name();
      const sequences: bigint[] = [];
      for (let turn = 0; turn < 9; turn++) {
        const backend = fixture.backends[turn % fixture.backends.length];
        const { sequence, entries } = await fixture.enterWith(
          fixture.claim(name),
          backend ?? fixture.backends[0],
          false,
        );
        sequences.push(sequence ?? 0n);
        assert.deepEqual(
          sequencesOf(entries),
          sequences,
          'enter returns the whole queue, with its own entry at the end',
        );
      }
      for (const backend of fixture.backends)
        assert.deepEqual(sequencesOf(await fixture.list(name, backend)), sequences);
      assertGrowing(sequences);
    },
  },
  {
    name: "sequence numbers grow on when all have left (Misk's release ABA, ShedLock #27, simple-redis-mutex #15)",
    async run(fixture) {
      const name = fixture.name();
      const sequences: bigint[] = [];
      for (let turn = 0; turn < 4; turn++) {
        const key = await fixture.enter(fixture.claim(name), fixture.backends[turn % 2]);
        assert.equal(await fixture.leave(key, fixture.backends[turn % 3]), true);
        assert.deepEqual(await fixture.list(name), []);
        sequences.push(key.sequence);
      }
      assertGrowing(sequences);
    },
  },
  {
    name: "sequence numbers grow on when all have expired and for a backend that was opened later (Misk's release ABA)",
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      const first = await fixture.enter(fixture.claim(name, { ttlMs: fixture.shortTtlMs }));
      await fixture.untilGone(first);
      const second = await fixture.enter(fixture.claim(name), await fixture.open());
      assertGrowing([first.sequence, second.sequence]);
    },
  },
  {
    name: 'each name has its own queue',
    async run(fixture) {
      const [one, other] = [fixture.name(), fixture.name()];
      const key = await fixture.enter(fixture.claim(one));
      const { entries } = await fixture.enterWith(fixture.claim(other), fixture.backends[1], true);
      assert.equal(entries.length, 1);
      assert.ok(contains(await fixture.list(one), key));
    },
  },
  {
    name: 'onlyIfHolds enters what holds at once and nothing else, in every mode',
    async run(fixture) {
      const permitsOf = (mode: EntryMode): number => (mode === 'permit' ? 2 : 1);
      for (const before of modes) {
        for (const mode of modes) {
          const name = fixture.name();
          await fixture.enter(fixture.claim(name, { mode: before, permits: permitsOf(before) }));
          for (let turn = 0; turn < 2; turn++) {
            await checkOnlyIfHolds(fixture, fixture.claim(name, { mode, permits: permitsOf(mode) }));
          }
        }
      }
    },
  },
  {
    name: 'onlyIfHolds goes by the whole queue, whatever its entries',
    async run(fixture) {
      const random = fixture.random('the whole queue');
      const any = (): Pick<Entry, 'mode' | 'permits'> => {
        const mode = modes[random.below(modes.length)] ?? 'exclusive';
        return { mode, permits: mode === 'permit' ? 1 + random.below(3) : 1 };
      };
      for (let round = 0; round < fixture.rounds(20); round++) {
        const name = fixture.name();
        const before = Array.from({ length: random.below(5) }, any);
        for (const one of before) await fixture.enter(fixture.claim(name, one), fixture.backends[1]);
        await checkOnlyIfHolds(fixture, fixture.claim(name, any()));
      }
    },
  },
  {
    name: 'onlyIfHolds is one step: of 20 at once one enters (ShedLock #3577)',
    async run(fixture) {
      for (let round = 0; round < fixture.rounds(15); round++) {
        const name = fixture.name();
        const claims = Array.from({ length: 20 }, () => fixture.claim(name));
        const all = await Promise.all(
          claims.map((claim, at) => fixture.enterWith(claim, fixture.backends[at % 3] ?? fixture.backends[0], true)),
        );
        const entered = all.filter(({ sequence }) => sequence !== undefined);
        assert.equal(entered.length, 1, `${entered.length} of 20 entered where one may hold`);
        assert.equal((await fixture.list(name, fixture.backends[2])).length, 1);
      }
    },
  },
  {
    name: 'onlyIfHolds is not kept out by one whose life has ended',
    isWaiting: true,
    async run(fixture) {
      const name = fixture.name();
      const first = await fixture.enter(fixture.claim(name, { ttlMs: fixture.shortTtlMs }));
      await fixture.until('its life has ended', async () => {
        const { sequence } = await fixture.enterWith(fixture.claim(name), fixture.backends[1], true);
        return sequence !== undefined && sequence > first.sequence;
      });
      assert.equal(await fixture.renew(first, fixture.longTtlMs), false);
    },
  },
  {
    name: 'a waiter in the middle that leaves changes no other position (etcd3 #176)',
    async run(fixture) {
      const name = fixture.name();
      const [first, middle, last] = [
        await fixture.enter(fixture.claim(name), fixture.backends[0]),
        await fixture.enter(fixture.claim(name), fixture.backends[1]),
        await fixture.enter(fixture.claim(name), fixture.backends[2]),
      ];
      assert.equal(await fixture.leave(middle, fixture.backends[1]), true);
      const queue = await fixture.list(name, fixture.backends[2]);
      assert.deepEqual(sequencesOf(queue), [first.sequence, last.sequence]);
      assert.deepEqual(sequencesOf(holders(queue)), [first.sequence]);
    },
  },
];

/** One enters under each name, and is alone there. */
async function areApart(fixture: ConformanceFixture, names: readonly string[]): Promise<void> {
  const keys = await Promise.all(names.map((name, at) => fixture.enter(fixture.claim(name), fixture.backends[at % 3])));
  for (const [at, key] of keys.entries()) {
    const queue = await fixture.list(key.name, fixture.backends[(at + 1) % 3]);
    assert.deepEqual(
      queue.map(({ name, id }) => [name, id]),
      [[key.name, key.id]],
    );
  }
  assert.deepEqual(
    await fixture.backends[1].renew(
      keys.map((key) => ({ ...key, ttlMs: fixture.longTtlMs })),
      fixture.signal,
    ),
    keys.map(() => true),
  );
}

async function checkOnlyIfHolds(fixture: ConformanceFixture, claim: Claim): Promise<void> {
  const queue = await fixture.list(claim.name);
  const { holds } = queuePosition(queue, { ...claim, sequence: 2n ** 62n });
  const { sequence, entries } = await fixture.enterWith(claim, fixture.backends[1], true);
  const words = queue.map(({ mode, permits }) => `${mode} ${permits}`).join(', ');
  assert.equal(sequence !== undefined, holds, `${claim.mode} ${claim.permits} behind ${words}`);
  assert.deepEqual(sequencesOf(entries), sequencesOf(await fixture.list(claim.name)), 'the answer has the whole queue');
  assert.deepEqual(
    sequencesOf(entries).slice(0, queue.length),
    sequencesOf(queue),
    'the answer has the earlier entries',
  );
  assert.equal(entries.length, queue.length + (holds ? 1 : 0));
}

function withoutHint({ expiresInMs: _hint, ...entry }: Entry): Omit<Entry, 'expiresInMs'> {
  return entry;
}

function checkHint(entry: Entry | undefined): void {
  assert.ok(entry !== undefined);
  const { expiresInMs, ttlMs } = entry;
  assert.ok(expiresInMs === undefined || (expiresInMs > 0 && expiresInMs <= ttlMs + 1_000), `${expiresInMs}`);
}

function sequencesOf(entries: readonly Entry[]): readonly bigint[] {
  return entries.map(({ sequence }) => sequence);
}

function assertGrowing(sequences: readonly bigint[]): void {
  for (const [at, sequence] of sequences.entries()) {
    assert.ok(
      at === 0 || sequence > (sequences[at - 1] ?? 0n),
      `sequence numbers do not grow: ${sequences.join(', ')}`,
    );
  }
}
