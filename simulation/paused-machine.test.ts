import { encodeLeaseGrantRequest, encodeLeaseKeepAliveRequest, frameHeadroomBytes } from '@tenure/codec';
import { expect, inject, test } from 'vitest';
import { decodeCommand } from '../packages/server/src/replica/command-codec.ts';
import { decodeEntry } from '../packages/server/src/replica/entry-codec.ts';
import { clockErrorMax, leaderLeaseMs } from './leases/expiry-bound.ts';
import { serversScenarioOf, type Fault, type ServersScenario } from './servers-scenario.ts';
import { simulateScenario } from './simulate.ts';
import { World, type Machine } from './world/world.ts';

/** Machines that are suspended without any clock counting it: paused virtual machines. */
const hidesSuspension = true;
const seedCount = { commit: 40, ci: 400, soak: 5_000 }[inject('effort')];
/** The violations about renewals: a leader answers only renewals from memory alone. */
const answers = /^L(8|3) at .* (acknowledged a renewal|a renewal of lease .* was acknowledged|was said not to exist)/;

test('a pause that no clock counts makes answers wrong for one leader lease, and no write or expiry', async () => {
  let wrong = 0;
  let longestMs = 0;
  for (let seed = 1; seed <= seedCount; seed += 1) {
    const { violations, wronglyAwakeMs } = await simulateScenario(suspensionsOnly(seed), { hidesSuspension });
    expect(violations.filter((violation) => !answers.test(violation))).toEqual([]);
    wrong += violations.length;
    longestMs = Math.max(longestMs, wronglyAwakeMs);
  }
  console.log(`${wrong} wrong answers, the last one ${Math.round(longestMs)} ms after its leader woke`);
  expect(wrong).toBeGreaterThan(0);
  expect(longestMs).toBeLessThan(leaderLeaseMs / (1 - clockErrorMax));
});

/** The scenario of a seed, with the suspension of a leader for each of its faults. */
function suspensionsOnly(seed: number): ServersScenario {
  const scenario = serversScenarioOf(seed);
  const faults = scenario.faults.map((fault): Fault => ({ ...fault, kind: 'suspend', atLeader: true }));
  return { ...scenario, servers: 3, isShared: true, keyClients: 0, watchClients: 0, olderServers: [], faults };
}

/** Lease 1 is revoked during the pause; the expiry of lease 2 and the checkpoint of lease 3 are due at its end. */
const ttlsMs = [20_000, 2_000, 3_000] as const;
const calmWorld = {
  servers: 3,
  olderServers: [],
  isShared: true,
  serverFlags: [],
  lateShare: 0,
  maxPendingCommands: 65_536,
  windowBytes: 64 * 1024,
} as const;
/** When the leader is suspended: at each of the moments around the time when they are due. */
const suspendedAtMs = Array.from({ length: 24 }, (_, index) => 4_700 + 20 * index);

test('a resumed leader trusts its leader lease; the log rejects its write, expiry and checkpoint', async () => {
  const refused = new Set<string>();
  let trusting = 0;
  for (const [run, atMs] of suspendedAtMs.entries()) {
    const world = new World({ ...calmWorld, seed: run + 1, hidesSuspension });
    world.log.isRough = false;
    world.start();
    await world.schedule.runUntil(3_000);
    const former = leading(world);
    const granted = ttlsMs.map((ttlMs, index) => grant(world, former, BigInt(index + 1), ttlMs));
    await world.schedule.runUntil(atMs);
    expect(await Promise.all(granted)).not.toContainEqual(expect.any(Error));
    former.process.clock.suspend();
    await world.schedule.runUntil(atMs + 3_000);
    const next = world.machines.find((machine) => machine !== former && machine.process.leads);
    if (next === undefined) throw new Error('no other server leads three seconds later');
    const revoked = revoke(world, next, 1n);
    await world.schedule.runUntil(atMs + 3_100);
    expect(await revoked).not.toBeInstanceOf(Error);

    const appended = observeAppends(world, former);
    former.process.clock.resume();
    // From its memory: another server has revoked the lease. With an append in flight it waits for that.
    const renewed = former.process.server?.driver.renew(1n, undefined);
    if (renewed instanceof Promise) renewed.catch(() => undefined);
    else expect(renewed).toBe(ttlsMs[0]);
    const isTrusted = typeof renewed === 'number';
    trusting += isTrusted ? 1 : 0;
    if (run % 2 === 0) void grant(world, former, 4n, 60_000);
    await world.schedule.runUntil(atMs + 4_100);
    expect(appended.filter(({ isRefused }) => !isRefused)).toEqual([]);
    for (const { commands } of appended) for (const kind of commands) refused.add(kind);
    expect(former.process.leads).toBe(false);
    const rules = world.violations.all.map((violation) => violation.slice(0, 2));
    // The answer to that append may be in the socket already: then the renewal that waited for it is answered too.
    if (isTrusted || rules.length > 0) expect(rules).toEqual(['L8']);
  }
  expect(trusting).toBeGreaterThan(suspendedAtMs.length / 2);
  expect([...refused]).toEqual(expect.arrayContaining(['leaseGrant', 'expireLeases', 'checkpointLeases']));
});

function leading(world: World): Machine {
  const machine = world.leading();
  if (machine === undefined) throw new Error('no server leads after three seconds');
  return machine;
}

/** The appends of this process that reach the log from now on. */
function observeAppends({ log }: World, { process }: Machine) {
  const appended: { readonly commands: readonly string[]; readonly isRefused: boolean }[] = [];
  const { epoch } = process.server?.state ?? { epoch: 0 };
  const commit = log.commit.bind(log);
  log.commit = (request, settle) => {
    const { headers, commands: encoded } = decodeEntry(request.bytes);
    const isOurs = request.writer === process.clock && headers.epoch === epoch;
    const commands = encoded.map((command) => decodeCommand(command).kind);
    try {
      commit(request, settle);
      if (isOurs) appended.push({ commands, isRefused: false });
    } catch (error) {
      if (isOurs) appended.push({ commands, isRefused: true });
      throw error;
    }
  };
  return appended;
}

/** An unanswered call ends after half a second of virtual time. */
function grant(world: World, machine: Machine, id: bigint, ttlMs: number): Promise<unknown> {
  const request = encodeLeaseGrantRequest({ id, ttlSeconds: 0, ttlMs, label: '' });
  return call(world, machine, 'LeaseGrant', request.subarray(frameHeadroomBytes));
}

/** The request has the bytes of a renewal. */
function revoke(world: World, machine: Machine, id: bigint): Promise<unknown> {
  return call(world, machine, 'LeaseRevoke', encodeLeaseKeepAliveRequest(id).subarray(frameHeadroomBytes));
}

async function call(world: World, machine: Machine, method: string, request: Uint8Array): Promise<unknown> {
  const client = { name: 'client', clock: world.clientClock() };
  return world.network
    .connect(client, machine.process.address)
    .call(`/etcdserverpb.Lease/${method}`, request, 500)
    .catch((error: Error) => error);
}
