import { afterEach, describe, expect, inject, test } from 'vitest';
import { hasPostgres } from '../../packages/server/src/engines/postgres/testing/postgres-programs.ts';
import { ClusterLoad } from './cluster-load.ts';
import { Cluster } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { lastIndex, PostgresPair } from './postgres-pair.ts';

const names = ['s1', 's2', 's3'];
/** What the command ends with when the server had to stop. */
const failedExitCode = 1;
const pauseMs = 10;
const writes = { commit: 40, ci: 40, soak: 100 }[inject('effort')];

/** Asks a server for a key until it has ended, linearizably, and gives whatever it answers. */
async function readUntilItEnds(member: ClusterMember, key: string): Promise<string[]> {
  const answers: string[] = [];
  while (member.isAlive) {
    const read = await member.kv.range({ key: Buffer.from(key) }, { deadlineMs: 1_000 }).catch(() => undefined);
    if (read !== undefined) answers.push(Buffer.from(read.kvs[0]?.value ?? []).toString());
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return answers;
}

describe.skipIf(!hasPostgres())('three servers on a pair of PostgreSQL servers', () => {
  let pair: PostgresPair | undefined;
  let cluster: Cluster | undefined;
  let load: ClusterLoad | undefined;
  const open = async (): Promise<[PostgresPair, Cluster]> => {
    const opened = (pair = await PostgresPair.create());
    const servers = (cluster = await Cluster.start(names.map((name) => ({ name, engine: opened.url }))));
    return [opened, servers];
  };
  afterEach(async () => {
    await load?.stop();
    await cluster?.stop();
    await pair?.dispose();
    [pair, cluster, load] = [undefined, undefined, undefined];
  });

  test('follow to the standby when a synchronous primary is killed, and have lost nothing', async () => {
    const [databases, servers] = await open();
    await databases.makeSynchronous();
    const running = (load = await ClusterLoad.start(servers, 1));
    await running.progress(writes);
    await databases.primary.stop('kill');
    await databases.standby.promote();
    await running.progress(writes);
    await running.leases.allRenewed();
    expect(servers.members).toHaveLength(names.length);
    await running.finish();
  });

  test('stop when an asynchronous standby takes over that lacks what they have applied', async () => {
    const [databases, servers] = await open();
    const leader = await servers.leader();
    await leader.put('fresh', 'on both');
    await databases.caughtUp();
    await databases.separate();
    await leader.put('fresh', 'lost');
    for (const member of servers.members) expect(await member.get('fresh')).toBe('lost');

    await databases.primary.stop('kill');
    const { members } = servers;
    const answers = members.map((member) => readUntilItEnds(member, 'fresh'));
    await databases.standby.promote();
    for (const { process } of members) {
      const { code, err } = await process.ended;
      expect(code).toBe(failedExitCode);
      expect(err).toMatch(/Error: the server stopped: the log ends at entry \d+, before entry \d+ that was applied/);
      expect(err).toContain('the database has lost the end of it, as after a failover to a standby');
    }
    // Nobody was told of the lost state as if it were current, from the moment that it was lost.
    expect(await Promise.all(answers)).toEqual([[], [], []]);

    // Those that start anew have never applied what was lost, and go on from what there is.
    await Promise.all(names.map((name) => servers.join({ name, engine: databases.url })));
    for (const member of servers.members) expect(await member.get('fresh')).toBe('on both');
    await servers.checkSameState();
  });

  test('stop as well when the standby has gone on with other entries in place of those', async () => {
    const [databases, servers] = await open();
    const [slow] = (await servers.followers()) as [ClusterMember];
    const ahead = servers.members.filter((member) => member !== slow);
    const leader = await servers.leader();
    await leader.put('fresh', 'on both');
    expect(await slow.get('fresh')).toBe('on both');
    await databases.caughtUp();
    await databases.separate();
    slow.process.signal('SIGSTOP');
    await leader.put('fresh', 'lost');
    for (const member of ahead) expect(await member.get('fresh')).toBe('lost');
    const lostEnd = await lastIndex(databases.primary);
    await databases.primary.stop('kill');
    for (const { process } of ahead) process.signal('SIGSTOP');
    await databases.standby.promote();
    // It never had what was lost, so that it may lead; when the others wake, the log is longer than ever.
    slow.process.signal('SIGCONT');
    await servers.leader([slow]);
    for (let write = 1; (await lastIndex(databases.standby)) < lostEnd + 5; write += 1) {
      await slow.put('fresh', `other ${write}`);
    }
    const answers = ahead.map((member) => readUntilItEnds(member, 'fresh'));
    for (const { process } of ahead) process.signal('SIGCONT');
    for (const { process } of ahead) {
      const { code, err } = await process.ended;
      expect(code).toBe(failedExitCode);
      expect(err).toMatch(/Error: the server stopped: the log has another entry \d+ than the one that was applied/);
      expect(err).toContain('the database has replaced the end of it');
    }
    expect(await Promise.all(answers)).toEqual([[], []]);
    const value = await slow.get('fresh');
    await Promise.all(ahead.map(({ name }) => servers.join({ name, engine: databases.url })));
    for (const member of servers.members) expect(await member.get('fresh')).toBe(value);
    await servers.checkSameState();
  });
});
