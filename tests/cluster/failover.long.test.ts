import { hasPostgres, lastIndex, PostgresPair } from '@tenure/test-support';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { ClusterLoad } from './cluster-load.ts';
import { Cluster, eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { LastingWatch } from './lasting-watch.ts';

const names = ['s1', 's2', 's3'];
/** The exit code of the command when the server had to stop. */
const failedExitCode = 1;
const pauseMs = 10;
const writes = { commit: 40, ci: 40, soak: 100 }[inject('effort')];

/** Reads a key from a server, linearizably, until the server has ended, and yields every answer. */
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
  let watches: LastingWatch[] = [];
  const open = async (): Promise<[PostgresPair, Cluster]> => {
    const opened = (pair = await PostgresPair.create());
    const servers = (cluster = await Cluster.start(names.map((name) => ({ name, engine: opened.url }))));
    return [opened, servers];
  };
  afterEach(async () => {
    for (const watch of watches.splice(0)) watch.stop();
    await load?.stop();
    await cluster?.stop();
    await pair?.dispose();
    [pair, cluster, load] = [undefined, undefined, undefined];
  });

  test('continue on the standby when a synchronous primary is killed, and lose nothing', async () => {
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

  test('report no write to a watcher that only the primary has and that is lost with it', async () => {
    const [databases, servers] = await open();
    await databases.makeSynchronous();
    const { primary, standby } = databases;
    watches = names.map((_, at) => new LastingWatch(() => servers.members, at));
    const leader = await servers.leader();
    let written = 0;
    const writing = (async () => {
      for (;;) {
        await leader.put('k', `value ${written + 1}.`);
        written += 1;
      }
    })().catch(() => undefined);
    for (const watch of watches) await watch.seen(({ value }) => value === 'value 3.');
    await standby.stop();
    const waiting = `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name ~ `;
    const ended = `SELECT pg_terminate_backend(pid) FROM (${waiting} '^tenure append') AS waiting`;
    await eventually('an append waits for the standby', async () =>
      (await primary.query(ended)).length > 0 ? true : undefined,
    );
    // No client retries that write, so its value has no other origin.
    await writing;
    const lost = `value ${written + 1}.`;
    const shown = `SELECT FROM tenure.entries WHERE position($1::bytea IN bytes) > 0`;
    expect(await primary.query(shown, [Buffer.from(lost)])).toHaveLength(1);
    await eventually('the servers ask for a proof', async () =>
      (await primary.query(`${waiting} '^tenure proof'`)).length >= 2 ? true : undefined,
    );
    await primary.stop('kill');
    await standby.start();
    await standby.promote();
    await eventually(
      'a server accepts a write',
      () => servers.members[0]?.put('k', 'after') ?? Promise.resolve(undefined),
    );
    for (const watch of watches) {
      await watch.seen(({ value }) => value === 'after');
      const values = watch.events.map(({ value }) => value);
      expect(values).not.toContain(lost);
      expect(values).toContain(`value ${written}.`);
    }
    expect(servers.members).toHaveLength(names.length);
    await servers.checkSameState();
  });

  test('stop when an asynchronous standby takes over that lacks entries they have applied', async () => {
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
    // No client was told of the lost state as if it were current, from the moment of the loss.
    expect(await Promise.all(answers)).toEqual([[], [], []]);

    // New servers have never applied the lost entries, and continue from the remaining log.
    await Promise.all(names.map((name) => servers.join({ name, engine: databases.url })));
    for (const member of servers.members) expect(await member.get('fresh')).toBe('on both');
    await servers.checkSameState();
  });

  test('stop as well when the standby has other entries in place of the lost ones', async () => {
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
    // This server never had the lost entries, so it may lead. When the others resume, the log is longer than before.
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
