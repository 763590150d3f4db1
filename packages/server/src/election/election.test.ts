import { VirtualClock } from '@tenure/test-support';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Election, type ElectionOptions } from './election.ts';

interface Held {
  readonly clock: VirtualClock;
  readonly election: Election;
  readonly claimsMs: number[];
}

function hold(options: Partial<ElectionOptions> = {}): Held {
  const clock = new VirtualClock();
  const claimsMs: number[] = [];
  const election = new Election({
    clock,
    electionTimeoutMs: 1_000,
    rightMs: () => 0,
    random: () => 0,
    engaged: () => false,
    claim: () => claimsMs.push(clock.monotonicMs()),
    ...options,
  });
  return { clock, election, claimsMs };
}

describe('an election', () => {
  test('waits for its timeout, and for the right of the leader with a quarter to spare', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(2_000), fc.double({ min: 0, max: 1, noNaN: true }), async (rightMs, chance) => {
        const { clock, election, claimsMs } = hold({ rightMs: () => rightMs, random: () => chance });
        const heardMs = 300;
        await clock.advance(heardMs);
        election.heard();
        const leastMs = Math.max(1_000, 1.25 * rightMs);
        await clock.advance(leastMs * (1 + chance / 2) + 1);
        expect(claimsMs).toHaveLength(1);
        expect(claimsMs[0]).toBeGreaterThanOrEqual(heardMs + leastMs);
        election.stop();
      }),
    );
  });

  test('is put off by whatever is heard of a leader', async () => {
    const { clock, election, claimsMs } = hold();
    for (let beat = 0; beat < 20; beat += 1) {
      await clock.advance(900);
      election.heard();
    }
    expect(claimsMs).toEqual([]);
    expect(election.hasLeader).toBe(true);
    await clock.advance(1_000);
    expect(election.hasLeader).toBe(false);
    expect(claimsMs).toEqual([19_000]);
  });

  test('claims again a whole timeout after a claim that came to nothing', async () => {
    const { clock, claimsMs } = hold();
    await clock.advance(3_500);
    expect(claimsMs).toEqual([1_000, 2_000, 3_000]);
  });

  test('does not claim while this server leads, nor once it has stopped', async () => {
    let leads = true;
    const { clock, election, claimsMs } = hold({ engaged: () => leads });
    await clock.advance(5_000);
    election.claimNow();
    expect(claimsMs).toEqual([]);
    leads = false;
    election.claimNow();
    expect(claimsMs).toEqual([5_000]);
    election.stop();
    election.claimNow();
    await clock.advance(5_000);
    expect(claimsMs).toEqual([5_000]);
  });
});
