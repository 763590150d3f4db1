import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refusalOf } from '../../conformance/client/refusal.ts';
import { Cluster, eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';

const heartbeatMs = 200;
const reads = 200;
const flags = ['--reads', 'lease', '--auto-compaction-retention', '1s'];

async function progressOf({ maintenance }: ClusterMember): Promise<{ index: number; epoch: bigint }> {
  const { raftAppliedIndex, raftTerm } = await maintenance.status({});
  return { index: Number(raftAppliedIndex), epoch: raftTerm };
}

/** Whether the history at that revision is gone. */
async function isCompacted({ kv }: ClusterMember, revision: number): Promise<boolean> {
  const status = await refusalOf(kv.range({ key: Buffer.from('k'), revision: BigInt(revision) })).catch(
    () => undefined,
  );
  return status?.details === 'etcdserver: mvcc: required revision has been compacted';
}

describe.skipIf(!hasPostgres())(
  'three servers that read by the leader lease, and compact their history',
  { timeout: 180_000 },
  () => {
    let database: PostgresDatabase;
    let cluster: Cluster;

    beforeAll(async () => {
      database = await PostgresDatabase.create();
      cluster = await Cluster.start(['s1', 's2', 's3'].map((name) => ({ name, engine: database.url(), flags })));
    });

    afterAll(async () => {
      await cluster?.stop();
      await database?.dispose();
    });

    /** The growth of the log meanwhile; undefined if the leader changed. */
    const readsThrough = async (name: string): Promise<{ appended: number; heartbeats: number } | undefined> => {
      const leader = await cluster.leader();
      const member = cluster.members.find((each) => each.name === name) as ClusterMember;
      expect(await member.get('k')).toBe('v');
      const before = await progressOf(leader);
      const beganMs = performance.now();
      for (let read = 0; read < reads; read += 1) expect(await member.get('k')).toBe('v');
      const after = await progressOf(leader);
      const heartbeats = (performance.now() - beganMs) / heartbeatMs;
      return after.epoch === before.epoch ? { appended: after.index - before.index, heartbeats } : undefined;
    };

    test('append nothing for a read, on the leader or through a follower', async () => {
      await (await cluster.leader()).put('k', 'v');
      for (const { name } of cluster.members) {
        const { appended, heartbeats } = await eventually('the reads fall into one epoch', () => readsThrough(name));
        // Only the heartbeat and, once a second, the compaction append.
        expect(appended).toBeLessThanOrEqual(Math.ceil(heartbeats * 1.2) + 3);
      }
    });

    test('read every write acknowledged before, also after a change of leader', async () => {
      const roam = async (rounds: number): Promise<void> => {
        const { members } = cluster;
        for (let round = 0; round < rounds; round += 1) {
          const value = `value ${round} of ${rounds}`;
          await (members[round % members.length] as ClusterMember).put('roaming', value);
          for (const member of members) expect(await member.get('roaming')).toBe(value);
        }
      };
      await roam(30);
      await eventually('leadership is transferred', async () => {
        const old = await cluster.leader();
        const [next] = (await cluster.followers()) as [ClusterMember];
        const { header } = await next.maintenance.status({});
        await old.maintenance.moveLeader({ targetID: header?.memberId ?? 0n });
        return true;
      });
      await roam(29);
    });

    test('compact automatically: the leader does, and after its death the next one', async () => {
      const first = await (await cluster.leader()).put('k', 'first');
      for (const member of cluster.members) {
        await member.put('k', 'behind it');
        await eventually('it is compacted', async () => ((await isCompacted(member, first)) ? true : undefined));
      }
      const old = await cluster.leader();
      await old.stop('SIGKILL');
      const second = await (await cluster.leader()).put('k', 'second');
      for (const member of cluster.members) {
        await member.put('k', 'behind it');
        await eventually('it is compacted again', async () => ((await isCompacted(member, second)) ? true : undefined));
      }
      expect(await (await cluster.leader()).get('k')).toBe('behind it');
      await cluster.checkSameState();
    });
  },
);
