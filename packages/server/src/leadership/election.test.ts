import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '@tenure/test-support';
import { Election, type ElectionOptions } from './election.ts';

interface Timed {
  readonly clock: VirtualClock;
  readonly election: Election;
  readonly claimsMs: number[];
  /** Advances the time, and notifies the election when it asked for it. */
  readonly advance: (ms: number) => Promise<void>;
}

function time(options: Partial<ElectionOptions> = {}): Timed {
  const clock = new VirtualClock();
  const claimsMs: number[] = [];
  const state = { leaderLeaseMs: 0 };
  const election = new Election({ clock, electionTimeoutMs: 1_000, state, random: () => 0, ...options });
  const advance = async (ms: number): Promise<void> => {
    const untilMs = clock.monotonicMs() + ms;
    while (election.wakeAtMs <= untilMs) {
      await clock.advance(Math.max(0, election.wakeAtMs - clock.monotonicMs()));
      if (election.timePassed()) claimsMs.push(clock.monotonicMs());
    }
    await clock.advance(untilMs - clock.monotonicMs());
  };
  return { clock, election, claimsMs, advance };
}

describe('an election', () => {
  test('waits for its timeout, and for 1.25 times the leader lease', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(2_000), fc.double({ min: 0, max: 1, noNaN: true }), async (leaderLeaseMs, chance) => {
        const { election, claimsMs, advance } = time({ state: { leaderLeaseMs }, random: () => chance });
        const heardMs = 300;
        await advance(heardMs);
        election.heard();
        const leastMs = Math.max(1_000, 1.25 * leaderLeaseMs);
        await advance(leastMs * (1 + chance / 2) + 1);
        expect(claimsMs).toHaveLength(1);
        expect(claimsMs[0]).toBeGreaterThanOrEqual(heardMs + leastMs);
      }),
    );
  });

  test('is postponed by each applied entry', async () => {
    const { election, claimsMs, advance } = time();
    for (let beat = 0; beat < 20; beat += 1) {
      await advance(900);
      election.heard();
    }
    expect(claimsMs).toEqual([]);
    expect(election.hasLeader).toBe(true);
    await advance(1_000);
    expect(election.hasLeader).toBe(false);
    expect(claimsMs).toEqual([19_000]);
  });

  test('claims again a full timeout after a failed claim', async () => {
    const { claimsMs, advance } = time();
    await advance(3_500);
    expect(claimsMs).toEqual([1_000, 2_000, 3_000]);
  });

  test('needs no timer where this server claims only on command', () => {
    expect(time({ electionTimeoutMs: Infinity }).election.wakeAtMs).toBe(Infinity);
  });
});
