import { once } from 'node:events';
import { connect } from 'node:http2';
import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterEach, expect, test } from 'vitest';
import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { Cluster } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';

const cleanups: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A call that never ends. A stopping server waits for it for as long as for any call. */
async function hang({ address }: ClusterMember): Promise<void> {
  const session = connect(`http://${address}`);
  cleanups.push(() => session.destroy());
  session.on('error', () => {});
  await once(session, 'connect');
  const call = session.request({
    ':method': 'POST',
    ':path': '/etcdserverpb.KV/Put',
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  call.on('error', () => {});
  call.write(Buffer.alloc(3));
  // When this is answered, everything sent before has been read.
  await new Promise<void>((resolve, reject) => session.ping((error) => (error === null ? resolve() : reject(error))));
}

test.skipIf(!hasPostgres())('a leader that stops slowly lets another server lead, and expires no lease', async () => {
  const database = await PostgresDatabase.create();
  cleanups.push(() => database.dispose());
  const cluster = await Cluster.start(['s1', 's2', 's3'].map((name) => ({ name, engine: database.url() })));
  cleanups.push(() => cluster.stop());
  const leader = await cluster.leader();
  const [follower] = (await cluster.followers()) as [ClusterMember];
  const { ID: id } = await follower.lease.leaseGrant({ TTL: 3n });
  const renewals = new KeepAliveStream(follower.client);
  cleanups.push(() => renewals.close());
  await hang(leader);
  let hasEnded = false;
  const ended = leader.process.end('SIGTERM').then((end) => {
    hasEnded = true;
    return end;
  });
  let epoch = 1n;
  while (epoch === 1n) {
    expect((await renewals.renew(id)).TTL).toBe(3n);
    ({ epoch } = await follower.leadership());
  }
  expect(await follower.put('a', '1')).toBeGreaterThan(1);
  expect((await renewals.renew(id)).TTL).toBe(3n);
  // Meanwhile the former leader still waits for its last call.
  expect(hasEnded).toBe(false);
  expect((await ended).code).toBe(0);
});
