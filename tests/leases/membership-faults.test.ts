import { SeededRandom } from '@tenure/test-support';
import fc from 'fast-check';
import { createLeaseManager } from 'tenure';
import { memoryBackend } from 'tenure/memory';
import { FakeClock } from 'tenure/testing';
import { describe, expect, test } from 'vitest';
import { stormy } from './contention.ts';
import { FaultyProcess } from './faulty-process.ts';

const ttlMs = 1_000;
const names = Array.from({ length: 30 }, (_, at) => `shard-${at}`);

describe('members of a group under all faults', () => {
  test('agree again after the faults, and each resource has exactly one owner', async () => {
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
          // A member that was cut off for longer than its TTL knows that it owns nothing.
          if (kind < 0.5 && process.isCut) await clock.advance(ttlMs);
          const own = members[processes.indexOf(process)]!;
          if (kind < 0.5) expect(names.every((name) => !own.owns(name))).toBe(true);
          process.isCut = false;
          process.resume();
        }
        Object.assign(rates, { lostRequest: 0, lostAnswer: 0, lostHint: 0, slow: 0 });
        await clock.advance(20_000);
        for (const member of members) expect(member.snapshot).toStrictEqual(members[0]!.snapshot);
        expect(members[0]!.snapshot.members.length).toBe(members.length);
        for (const name of names) expect(members.filter((member) => member.owns(name)).length).toBe(1);
        const disposed = Promise.all(managers.map((manager) => manager[Symbol.asyncDispose]()));
        await clock.advance(20_000);
        await disposed;
        expect(await store.list('membership/group', new AbortController().signal)).toEqual([]);
        await store.close();
        expect(clock.timerCount).toBe(0);
      }),
      { numRuns: 8, endOnFailure: true },
    );
  }, 120_000);
});
