import { defaultTxnLimits } from '@tenure/core';
import { expect, test } from 'vitest';
import { encodeCommand } from '../../packages/server/src/replica/command-codec.ts';
import { encodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import { ruleOf } from '../failure.ts';
import { World } from '../world/world.ts';
import { newestOlderKind } from './older-version.ts';

const quietMs = 6_000;

/** Three servers, of which these machines are older, after some seconds without a fault. */
async function quietWorld(machines: readonly number[], snapshotCount = 10_000): Promise<World> {
  const world = new World({
    seed: 1,
    servers: 3,
    isShared: true,
    olderServers: machines.map((machine) => ({ machine, newestCommand: newestOlderKind })),
    serverFlags: ['--snapshot-count', `${snapshotCount}`],
    lateShare: 0,
    maxPendingCommands: 65_536,
    windowBytes: 64 * 1024,
    hidesSuspension: false,
  });
  world.log.isRough = false;
  world.start();
  await world.schedule.runUntil(quietMs);
  expect(world.isWholeAt(0)).toBe(true);
  expect(world.allViolations).toEqual([]);
  return world;
}

/** Appends what only a defect would append while a server is older. */
function setLimits({ log, leases, schedule, clientClock }: World, writer: ReturnType<typeof clientClock>): void {
  const { epoch, clusterTimeMs: timeMs } = leases.state;
  const bytes = encodeEntry({ epoch, timeMs }, [encodeCommand({ kind: 'setTxnLimits', limits: defaultTxnLimits })]);
  log.commit({ bytes, after: log.tail, beganMs: schedule.nowMs, writer }, () => {});
}

test.each([
  ['three older servers', [0, 1, 2]],
  ['one older server', [1]],
  ['two older servers', [0, 2]],
])('%s, beside newer ones or not, never get the limits of transactions', async (_name, machines) => {
  const world = await quietWorld(machines);
  expect(world.leases.state.hasTxnLimits).toBe(false);
  expect(world.machines.map(({ process }) => process.isOlder)).toEqual([0, 1, 2].map((at) => machines.includes(at)));
});

test('an older server stops at a newer command with the message of the product, at each start', async () => {
  const world = await quietWorld([0]);
  setLimits(world, world.clientClock());
  await world.schedule.runUntil(quietMs + 3_000);
  const [used, ...stops] = world.allViolations;
  expect(used).toMatch(/^U1 .* server-1 cannot apply entry /);
  expect(stops.length).toBeGreaterThan(2);
  expect(new Set(stops.map(ruleOf))).toEqual(new Set(['failed']));
  for (const stop of stops) {
    expect(stop).toMatch(/server-1: .*a command of kind \d+, which this version of Tenure does not know: upgrade this/);
  }
});

test('an older server stops at a snapshot that has what a newer command did', async () => {
  const world = await quietWorld([0], 8);
  const [machine] = world.machines;
  if (machine === undefined) throw new Error('no machine');
  world.kill(machine);
  await world.schedule.runUntil(2 * quietMs);
  setLimits(world, world.clientClock());
  await world.schedule.runUntil(6 * quietMs);
  world.restart(machine);
  await world.schedule.runUntil(6 * quietMs + 1_000);
  expect(world.allViolations.at(-1)).toMatch(/failed .*server-1: .*the snapshot is of format \d+, but this version/);
});
