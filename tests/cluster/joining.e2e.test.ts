import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { Cluster } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';

const nameTaken = /a server of the same name is running/;

const rounds = { commit: 1, ci: 3, soak: 10 }[inject('effort')];
const limits = { timeout: 180_000 };

describe.skipIf(!hasPostgres())('two servers started at the same moment under one new name', limits, () => {
  let database: PostgresDatabase;
  const cluster = new Cluster();

  beforeEach(async () => {
    database = await PostgresDatabase.create();
  });

  afterEach(async () => {
    await cluster.stop();
    await database?.dispose();
  });

  /** Starts both, and resolves when one of them has stopped. */
  async function startBoth(name: string): Promise<void> {
    const starts = [1, 2].map(() => cluster.join({ name, engine: database.url() }));
    const outcomes = await Promise.allSettled(starts);
    const ready = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [String(outcome.reason)] : []));
    for (const reason of refused) expect(reason).toMatch(nameTaken);
    expect(ready.length).toBeGreaterThan(0);
    if (ready.length === 1) return;
    // Both may report that they are ready before one of them learns of the other.
    const end = await Promise.race(ready.map(({ process }) => process.ended));
    expect(end.err).toMatch(nameTaken);
  }

  async function idsOf(name: string): Promise<readonly bigint[]> {
    const leader = await cluster.leader();
    const { members } = await leader.cluster.memberList({});
    return members.filter((member) => member.name === name).map(({ ID }) => ID);
  }

  test('become one member of an existing cluster, and the other stops', async () => {
    await cluster.join({ name: 'first', engine: database.url() });
    for (let round = 0; round < rounds; round += 1) {
      const name = `twin-${round}`;
      await startBoth(name);
      expect(await idsOf(name)).toHaveLength(1);
      expect(cluster.members.filter((member) => member.name === name)).toHaveLength(1);
    }
    await cluster.checkSameState();
  });

  test('become one member of a new cluster, and the other stops', async () => {
    await startBoth('twin');
    const [id] = await idsOf('twin');
    const member = await cluster.leader();
    expect(cluster.members).toEqual([member]);
    expect(await idsOf('twin')).toEqual([id]);
    expect(await member.put('a', '1')).toBe(2);
  });
});

describe.skipIf(!hasPostgres())('a leader that is removed from the members', limits, () => {
  test('can be reached by servers that join later', async () => {
    const database = await PostgresDatabase.create();
    const options = ['s1', 's2'].map((name) => ({ name, engine: database.url() }));
    const cluster = await Cluster.start(options);
    try {
      const leader = await cluster.leader();
      const [follower] = (await cluster.followers()) as [ClusterMember];
      const { header } = await leader.maintenance.status({});
      await follower.cluster.memberRemove({ ID: header?.memberId ?? 0n });
      const later = await cluster.join({ name: 's3', engine: database.url() });
      expect(await later.put('a', '1')).toBe(2);
      expect(await cluster.leader()).toBe(leader);
    } finally {
      await cluster.stop();
      await database.dispose();
    }
  });
});
