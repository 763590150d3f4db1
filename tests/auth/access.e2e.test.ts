import { hasPostgres, PostgresDatabase, SeededRandom } from '@tenure/test-support';
import { afterEach, expect, inject, test } from 'vitest';
import { Cluster } from '../cluster/cluster.ts';
import type { ClusterMember, MemberOptions } from '../cluster/cluster-member.ts';
import { StallMeter } from '../cluster/stall-meter.ts';
import { AccessLoad } from './access-load.ts';
import { expectSameAuth } from './same-auth.ts';
import { RootAccess } from './root-access.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

test.skipIf(!hasPostgres())(
  'no request is decided by permissions from before an acknowledged change, while the leader is killed',
  { timeout: 180_000 },
  async () => {
    const database = await PostgresDatabase.create();
    cleanups.push(() => database.dispose());
    const random = new SeededRandom(inject('seed'));
    let servers = (): readonly ClusterMember[] => [];
    const root = new RootAccess(
      () => servers(),
      (count) => random.below(count),
    );
    const options = (name: string): MemberOptions => ({ name, engine: database.url(), metadata: root.metadata });
    const cluster = await Cluster.start(['s1', 's2', 's3'].map(options));
    cleanups.push(() => cluster.stop());
    servers = () => cluster.members;
    const stalls = new StallMeter(() => cluster.pids);
    cleanups.push(() => stalls.stop());
    const load = await AccessLoad.start(root, servers);
    cleanups.push(() => load.stop());
    const { judge } = load;
    await load.change(0);
    const old = await cluster.leader();
    const killedMs = performance.now();
    const changing = load.change(1);
    await old.stop('SIGKILL');
    await cluster.leader();
    const ledMs = performance.now();
    await changing;
    judge.startedMs.set(old.name, performance.now());
    await cluster.join(options(old.name));
    judge.startedMs.set(old.name, performance.now());
    await load.disable();
    await load.change(2);
    await load.progress();
    const leaderless = (fromMs: number, toMs: number): number =>
      Math.max(0, Math.min(toMs, ledMs) - Math.max(fromMs, killedMs));
    const violations = await load.finish((fromMs, toMs) => leaderless(fromMs, toMs) + stalls.between(fromMs, toMs));
    console.log(JSON.stringify(judge.counts), `${Math.round(ledMs - killedMs)} ms without a leader`);
    expect(violations.slice(0, 20)).toEqual([]);
    expect(judge.counts.denied).toBeGreaterThan(100);
    await expectSameAuth(cluster);
    await cluster.checkSameState();
  },
);
