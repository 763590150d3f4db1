import { expect, inject, test } from 'vitest';
import { Cluster } from './cluster.ts';
import { clockErrorMax, rightMs } from './expiry-bound.ts';
import { SeededRandom } from '@tenure/test-support';
import { simulate } from './simulate.ts';

/** Machines that are suspended and of which no clock has counted that: virtual machines that were paused. */
const noClockTells = { wallClock: true };
const seedCount = { commit: 150, ci: 1_000, soak: 5_000 }[inject('effort')];
/** Renewals, and what a client is told of a renewal: all that a leader says from its memory alone. */
const answers = /^L(8|3) at .* (acknowledged a renewal|a renewal of lease .* was acknowledged|was said not to exist)/;
const ttlMs = 5_000;

test('a pause that no clock tells of makes answers wrong for one right, no write and no expiry', async () => {
  let wrong = 0;
  let longestMs = 0;
  for (let seed = 1; seed <= seedCount; seed += 1) {
    const { violations, wronglyAwakeMs } = await simulate(seed, noClockTells);
    expect(violations.filter((violation) => !answers.test(violation))).toEqual([]);
    wrong += violations.length;
    longestMs = Math.max(longestMs, wronglyAwakeMs);
  }
  console.log(`${wrong} wrong answers, the last one ${Math.round(longestMs)} ms after its leader woke`);
  expect(wrong).toBeGreaterThan(10);
  expect(longestMs).toBeLessThan(rightMs / (1 - clockErrorMax));
});

test('a leader that wakes believes in its right; its write, expiry and date are refused by the log', async () => {
  const scenario = { machines: 3, holders: 0, ttlMs: [ttlMs, ttlMs], faultsMs: 0, gapMs: [1, 1] } as const;
  const cluster = new Cluster({ ...scenario, engineTrouble: 0, atLeader: 0 }, new SeededRandom(7), noClockTells);
  const { schedule, checker, log } = cluster;
  cluster.start();
  await schedule.runUntil(3_000);
  const former = cluster.leading()?.server;
  if (former === undefined) throw new Error('no server leads after three seconds');
  const { epoch } = former.replica.state;
  const outcomes = [1n, 2n].map((id) => former.propose({ kind: 'leaseGrant', id, ttlMs, label: '' }));
  await schedule.runUntil(3_100);
  expect((await Promise.all(outcomes)).map(({ kind }) => kind)).not.toContain('error');

  former.clock.suspend();
  await schedule.runUntil(6_000);
  const next = cluster.machines.find(({ server }) => server !== former && server.replica.leading)?.server;
  expect(next?.replica.state.epoch).toBeGreaterThan(epoch);
  const revoked = next?.propose({ kind: 'leaseRevoke', id: 1n });
  await schedule.runUntil(6_100);
  expect((await revoked)?.kind).not.toBe('error');
  const before = log.entries.length;
  const changed = schedule.nowMs;

  former.clock.resume();
  expect(former.leadership.mayAppend()).toBe(true);
  // From its memory: the lease was revoked by another.
  expect(former.renew(1n)).toBe(ttlMs);
  const [one] = former.replica.state.leases();
  const leases = [{ id: 2n, renewIndex: former.replica.state.lease(2n)?.renewIndex ?? 0 }];
  const refused = [
    former.replica.proposeHere({ kind: 'leaseGrant', id: 3n, ttlMs, label: '' }),
    former.replica.proposeHere({ kind: 'expireLeases', leases }),
    former.replica.proposeHere({
      kind: 'checkpointLeases',
      leases: leases.map((lease) => ({ ...lease, deadlineMs: 1 })),
    }),
  ];
  const settled = Promise.allSettled(refused);
  await schedule.runUntil(changed + 1_000);
  expect(one).toBeDefined();
  expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(log.entries.slice(before).map((entry) => entry.epoch)).not.toContain(epoch);
  expect([checker.exists(1n), checker.exists(2n), checker.exists(3n)]).toEqual([false, true, false]);
  expect(former.replica.leading).toBe(false);
  expect(checker.violations.map((violation) => violation.slice(0, 2))).toEqual(['L8']);
});
