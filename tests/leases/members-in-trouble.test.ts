import assert from 'node:assert/strict';
import { SeededRandom } from '@tenure/test-support';
import fc from 'fast-check';
import { createLeaseManager } from 'tenure';
import { memoryBackend } from 'tenure/memory';
import { FakeClock } from 'tenure/testing';
import { describe, test } from 'vitest';
import { stormy } from './contention.ts';
import { FaultyProcess } from './faulty-process.ts';

const ttlMs = 1_000;
const names = Array.from({ length: 30 }, (_, at) => `shard-${at}`);

describe('members of a group while everything goes wrong', () => {
  test("agree again once it has passed, and each thing is exactly one member's", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        const clock = new FakeClock();
        const store = memoryBackend({ clock });
        const random = new SeededRandom(seed);
        const rates = { ...stormy };
        const processes = Array.from({ length: 4 }, () => new FaultyProcess(clock, store, { random, rates }));
        const managers = processes.map(({ backend, clock: own }, at) => {
          return createLeaseManager({ backend, clock: own, holder: `process-${at}`, ttlMs });
        });
        const joining = managers.map(async (manager, at) => {
          for (;;) {
            try {
              return await manager.membership('group', { weight: at + 1 });
            } catch {
              await new Promise<void>((resolve) => clock.setTimer(100, resolve));
            }
          }
        });
        await clock.advance(20_000);
        const members = await Promise.all(joining);
        for (let round = 0; round < 6; round++) {
          const process = random.pick(processes);
          const kind = random.next();
          if (kind < 0.5) process.isCut = true;
          else process.stop();
          await clock.advance(random.next() * 3_000);
          // Who was cut off for longer than the life of its entry knows that nothing is its own.
          if (kind < 0.5 && process.isCut) await clock.advance(ttlMs);
          const own = members[processes.indexOf(process)]!;
          if (kind < 0.5) assert.ok(names.every((name) => !own.owns(name)));
          process.isCut = false;
          process.resume();
        }
        Object.assign(rates, { lostRequest: 0, lostAnswer: 0, lostHint: 0, slow: 0 });
        await clock.advance(20_000);
        for (const member of members) assert.deepEqual(member.snapshot, members[0]!.snapshot);
        assert.equal(members[0]!.snapshot.members.length, members.length);
        for (const name of names) assert.equal(members.filter((member) => member.owns(name)).length, 1);
        const disposed = Promise.all(managers.map((manager) => manager[Symbol.asyncDispose]()));
        await clock.advance(20_000);
        await disposed;
        assert.deepEqual(await store.list('membership/group', new AbortController().signal), []);
        await store.close();
        assert.equal(clock.timerCount, 0);
      }),
      { numRuns: 8, endOnFailure: true },
    );
  }, 120_000);
});
