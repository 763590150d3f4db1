import { v3electionpb } from '@tenure/protocol';
import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { Cluster, eventually } from '../cluster/cluster.ts';
import { LastingObserver } from './lasting-observer.ts';

const name = 'observed';
const values = 150;
const { campaign, proclaim, resign } = v3electionpb.Election.method;
const deadlineMs = 10_000;

describe.skipIf(!hasPostgres())('observers of an election on three servers', () => {
  let database: PostgresDatabase;
  let cluster: Cluster;

  beforeAll(async () => {
    database = await PostgresDatabase.create();
    cluster = await Cluster.start(['s1', 's2', 's3'].map((each) => ({ name: each, engine: database.url() })));
  });

  afterAll(async () => {
    await cluster?.stop();
    await database?.dispose();
  });

  /** Asks one server after another until one answers: what is asked may be done twice. */
  function lasting<Result extends {}>(ask: (client: GrpcClient) => Promise<Result>, first = 0): Promise<Result> {
    let at = first;
    return eventually('a server answers', () => ask(cluster.members[at++ % cluster.members.length]!.client));
  }

  /** The leader of the election under a lease of its own. */
  async function elected(value: string): Promise<v3electionpb.LeaderKey> {
    const member = cluster.members[0]!;
    const { ID: lease } = await member.lease.leaseGrant({ TTL: 3_600n });
    const request = { name: Buffer.from(name), lease, value: Buffer.from(value) };
    const { leader } = await member.client.unary(campaign, request, { deadlineMs });
    if (leader === undefined) throw new Error('a campaign has no leader');
    return leader;
  }

  test('miss no value while the leader of the servers is killed, or end with an error that clients retry', async () => {
    const first = await elected('0');
    const observers = [0, 1, 2].map((at) => new LastingObserver(name, () => cluster.members, at));
    try {
      for (const observer of observers) await observer.seen('0');
      const killed = await cluster.leader();
      for (let value = 1; value <= values; value += 1) {
        const request = { leader: first, value: Buffer.from(String(value)) };
        const proclaimed = lasting((client) => client.unary(proclaim, request, { deadlineMs }), value);
        if (value === values / 3) await killed.stop('SIGKILL');
        await proclaimed;
      }
      await Promise.all(observers.map((observer) => observer.seen(String(values))));
      await lasting((client) => client.unary(resign, { leader: first }, { deadlineMs }));
      const next = await elected('next');
      await Promise.all(observers.map((observer) => observer.seen('next')));
      for (const observer of observers) checkCalls(observer, Buffer.from(next.key).toString());
      // That of the killed server came again.
      expect(observers.some(({ calls }) => calls.length > 1)).toBe(true);
    } finally {
      for (const observer of observers) observer.stop();
    }
  });
});

/** One call is told of each value in turn, and the next call of nothing that is older. */
function checkCalls({ calls }: LastingObserver, next: string): void {
  const seen = calls.flat();
  for (const [at, { modRevision }] of seen.entries()) {
    expect(modRevision).toBeGreaterThanOrEqual(seen[at - 1]?.modRevision ?? 0);
  }
  for (const call of calls) {
    const proclaimed = call.filter(({ key }) => key !== next).map(({ value }) => Number(value));
    // A proclamation whose answer was lost is made again, with the same value.
    const steps = proclaimed.slice(1).map((value, at) => value - proclaimed[at]!);
    expect(steps.every((step) => step === 0 || step === 1)).toBe(true);
  }
  expect(seen.at(-1)).toMatchObject({ key: next, value: 'next' });
}
