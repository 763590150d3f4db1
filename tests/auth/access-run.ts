import { SeededRandom } from '@tenure/test-support';
import { expect } from 'vitest';
import { Cluster } from '../cluster/cluster.ts';
import type { ClusterMember, MemberOptions } from '../cluster/cluster-member.ts';
import { StallMeter } from '../cluster/stall-meter.ts';
import { AccessLoad } from './access-load.ts';
import { RootAccess } from './root-access.ts';
import { expectSameAuth } from './same-auth.ts';

export interface AccessRun {
  /** The value of --engine. */
  readonly engine: string;
  readonly flags: readonly string[];
  /** The number of leaders that are killed. */
  readonly kills: number;
  readonly seed: number;
}

/**
 * Three servers under the load of AccessLoad, whose leader is killed during changes and started again. Throws unless
 * every request was decided by the permissions of its time, and all servers agree afterwards.
 */
export async function runAccess({ engine, flags, kills, seed }: AccessRun): Promise<void> {
  const random = new SeededRandom(seed);
  let servers = (): readonly ClusterMember[] => [];
  const root = new RootAccess(
    () => servers(),
    (count) => random.below(count),
  );
  const options = (name: string): MemberOptions => ({ name, engine, flags, metadata: root.metadata });
  const cluster = await Cluster.start(['s1', 's2', 's3'].map(options));
  servers = () => cluster.members;
  const stalls = new StallMeter(() => cluster.pids);
  let load: AccessLoad | undefined;
  try {
    load = await AccessLoad.start(root, servers);
    const { judge } = load;
    const leaderless: { readonly fromMs: number; readonly toMs: number }[] = [];
    await load.change(0);
    for (let kill = 1; kill <= kills; kill += 1) {
      const old = await cluster.leader();
      const fromMs = performance.now();
      const changing = load.change(2 * kill - 1);
      await Promise.all([changing, replaceLeader(cluster, old, (toMs) => leaderless.push({ fromMs, toMs }))]);
      judge.startedMs.set(old.name, Infinity);
      await cluster.join(options(old.name));
      judge.startedMs.set(old.name, performance.now());
      await load.disable();
      await load.change(2 * kill);
    }
    await load.progress();
    const allowance = (fromMs: number, toMs: number): number => {
      const overlaps = leaderless.map((gap) => Math.max(0, Math.min(toMs, gap.toMs) - Math.max(fromMs, gap.fromMs)));
      return Math.max(0, ...overlaps) + stalls.between(fromMs, toMs);
    };
    const violations = await load.finish(allowance);
    const gaps = leaderless.map(({ fromMs, toMs }) => `${Math.round(toMs - fromMs)} ms`).join(', ');
    console.log(`${JSON.stringify(judge.counts)}, without a leader for ${gaps}`);
    expect(violations.slice(0, 20)).toEqual([]);
    // Signed tokens end with each change, so their clients mostly log in.
    expect(judge.counts.denied).toBeGreaterThan(0);
    // A signed token from before the last change does not read keys.
    await root.logIn();
    await expectSameAuth(cluster);
    await cluster.checkSameState();
  } finally {
    await load?.stop();
    stalls.stop();
    await cluster.stop();
  }
}

async function replaceLeader(cluster: Cluster, old: ClusterMember, led: (atMs: number) => void): Promise<void> {
  await old.stop('SIGKILL');
  await cluster.leader();
  led(performance.now());
}
