import { afterEach, describe, expect, inject, test } from 'vitest';
import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { ClusterLoad } from './cluster-load.ts';
import { eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { FaultyCluster, type CommonOptions } from './faulty-cluster.ts';
import { KeptLeases } from './kept-leases.ts';
import { checkLog } from './log-check.ts';
import { hasFaketime, SteppableClock } from './steppable-clock.ts';
import { testedEngines, type TestedEngine } from './tested-engine.ts';

const isSoak = inject('effort') === 'soak';
const standstillMs = isSoak ? 5_000 : 3_500;
/** Renewed through running servers, continuously, while the suspended leader could consider it expired. */
const livelyTtlMs = 2_500;
const keptTtlMs = 10_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Suspends the leader; `onWaking` is called directly before it resumes. */
async function checkStandstill(
  cluster: FaultyCluster,
  load: ClusterLoad,
  round: number,
  onWaking: (old: ClusterMember) => void,
): Promise<void> {
  const { servers } = cluster;
  const old = await servers.leader();
  const others = cluster.others(old);
  const { epoch } = await old.leadership();
  const stream = new KeepAliveStream(old.client);
  const short = BigInt(round * 100_000);
  const kept = load.leases.ids[0] as bigint;
  await old.lease.leaseGrant({ ID: short, TTLMs: 1_000n });
  expect((await stream.renew(short)).TTL).toBe(1n);
  const lively = new KeptLeases(livelyTtlMs, () => others);
  await lively.keep(30, short + 1n);

  old.process.signal('SIGSTOP');
  const stoppedMs = performance.now();
  const leader = await servers.leader(others);
  expect((await leader.leadership()).epoch).toBeGreaterThan(epoch);
  // The abandoned lease expires while the old leader is suspended; that leader's memory still has it.
  await eventually('the short lease expires', async () => {
    const { leases } = await leader.lease.leaseLeases({});
    return leases.some(({ ID }) => ID === short) ? undefined : true;
  });
  const fresh = [`new ${round}`, `from the old one ${round}`] as const;
  const revision = await leader.put('after the change', fresh[0]);
  // The requests of clients are in the old leader's sockets when it resumes.
  stream.send(short);
  stream.send(kept);
  const read = old.get('after the change');
  const write = old.put('after the change', fresh[1]).catch((error: unknown) => error);
  await pause(Math.max(0, standstillMs - (performance.now() - stoppedMs)));
  onWaking(old);
  old.process.signal('SIGCONT');
  const answers = [await stream.next(), await stream.next()];
  const ttlOf = (id: bigint): bigint | undefined => answers.find(({ ID }) => ID === id)?.TTL;
  console.log(`after SIGCONT the old leader answers ${ttlOf(short)} for the lost lease, ${ttlOf(kept)} for the kept`);
  expect(ttlOf(short)).toBe(0n);
  expect(ttlOf(kept)).toBe(BigInt(keptTtlMs / 1_000));
  for (const { header } of answers) expect(Number(header?.revision)).toBeGreaterThanOrEqual(revision);
  expect(fresh).toContain(await read);
  // Its write goes through the new leader, in order, or is not applied.
  const written = await write;
  if (typeof written === 'number') expect(written).toBeGreaterThan(revision);
  stream.close();
  await eventually(`${old.name} is ready`, async () => ((await old.ready()).status === 200 ? true : undefined));
  await load.progress(50);
  await lively.check(leader);
  lively.stop();
}

async function checkLogAfter(engine: TestedEngine): Promise<void> {
  const { entries, claims } = await checkLog(engine);
  console.log(`${claims} epochs in ${entries} entries of the log, none with an entry behind the next one's claim`);
  expect(claims).toBeGreaterThan(1);
}

// The tests of different engines run in parallel, since they mostly wait; the tests of one engine run in sequence.
describe.for(testedEngines)('three servers on $kind', { concurrent: true }, ({ isThere, start }) => {
  let cluster: FaultyCluster | undefined;
  let load: ClusterLoad | undefined;
  const clocks = new Map<string, SteppableClock>();
  const clockOf = (name: string): SteppableClock => {
    const clock = clocks.get(name) ?? new SteppableClock();
    clocks.set(name, clock);
    return clock;
  };
  const open = async (common: CommonOptions = {}): Promise<[FaultyCluster, ClusterLoad]> => {
    cluster = await FaultyCluster.start(await start(), common);
    load = await ClusterLoad.start(cluster.servers, 1, { keptTtlMs });
    return [cluster, load];
  };
  afterEach(async () => {
    const pids = new Map(cluster?.servers.members.map(({ name, process }) => [name, process.pid]));
    await load?.stop();
    await cluster?.dispose();
    for (const [name, clock] of clocks) clock.dispose(pids.get(name) ?? 0);
    clocks.clear();
    [cluster, load] = [undefined, undefined];
  });

  const lacksClock = !isThere || !hasFaketime();

  // The test with clocks shows the same.
  if (isSoak || lacksClock) {
    test
      .skipIf(!isThere)
      .sequential(
        'continue when the leader is suspended for seconds; it never acts by its old leader lease',
        async () => {
          const [running, clients] = await open();
          await checkStandstill(running, clients, 1, () => undefined);
          await clients.finish();
          await checkLogAfter(running.engine);
        },
      );
  }

  test
    .skipIf(lacksClock)
    .sequential(
      'do so when its wall clock is stepped meanwhile, and lose no lease when it is stepped later',
      async () => {
        const [running, clients] = await open({ envOf: (name) => clockOf(name).env });
        const stepOf = (aheadMs: number) => (old: ClusterMember) => clockOf(old.name).stepTo(aheadMs);
        // Forward by an hour, and back over the suspension.
        await checkStandstill(running, clients, 1, stepOf(3_600_000));
        await checkStandstill(running, clients, 2, stepOf(-standstillMs));
        for (const aheadMs of [3_600_000, -3_600_000, 500]) {
          clockOf((await running.servers.leader()).name).stepTo(aheadMs);
          await clients.progress(50);
        }
        await clients.finish();
        await checkLogAfter(running.engine);
      },
    );
});
