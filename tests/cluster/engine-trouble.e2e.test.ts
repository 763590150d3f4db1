import { EtcdProcess, hasEtcd, hasPostgres, PostgresCluster } from '@tenure/test-support';
import { toBinary, create } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { describe, expect, test, type TestContext } from 'vitest';
import { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { serviceCalls } from '../../conformance/client/service-calls.ts';
import { frameMessage, RawClient } from '../../packages/server/src/transport/testing/raw-call.ts';
import { Cluster, eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';

const key = Buffer.from('k');
const { PutRequestSchema, RangeRequestSchema, LeaseGrantRequestSchema, LeaseLeasesRequestSchema } = etcdserverpb;
const requests: Readonly<Record<string, Uint8Array>> = {
  '/etcdserverpb.KV/Put': toBinary(PutRequestSchema, create(PutRequestSchema, { key })),
  '/etcdserverpb.KV/Range': toBinary(RangeRequestSchema, create(RangeRequestSchema, { key })),
  '/etcdserverpb.Lease/LeaseGrant': toBinary(LeaseGrantRequestSchema, create(LeaseGrantRequestSchema, { TTL: 60n })),
  '/etcdserverpb.Lease/LeaseLeases': toBinary(LeaseLeasesRequestSchema, create(LeaseLeasesRequestSchema, {})),
};
const pages = ['/readyz?verbose', '/health', '/livez?verbose', '/metrics', '/version'];
/** Of hosts, ports, users, SQL, file names and drivers: nothing that a stranger should read. */
const details = [
  /127\.0\.0\.1|localhost|:\d{4,5}\b|postgres|etcd:\/\//,
  /ECONN|SQL|INSERT|tenure\.entries|extend file|base\/5|space exceeded|quota-backend/,
];

/** What a server answers while the database is in trouble. */
async function expectTold(member: ClusterMember, reason: string): Promise<void> {
  await eventually(`${member.name} says that ${reason}`, async () => {
    const { status, text } = await member.ready();
    return status === 503 && text.includes(`[-]leader failed: ${reason}\n`) ? true : undefined;
  });
  const [, port] = member.address.split(':');
  const client = new RawClient(Number(port));
  try {
    const calls = Object.entries(requests).map(async ([path, body]) => {
      const { trailers } = await client.call({ path, chunks: [frameMessage(Buffer.from(body))] });
      return [path, trailers['grpc-status'], trailers['grpc-message'], trailers['tenure-reason']];
    });
    const expected = Object.keys(requests).map((path) => [path, '14', 'etcdserver: request timed out', reason]);
    expect(await Promise.all(calls)).toEqual(expected);
  } finally {
    await client.close();
  }
  const { errors } = await member.maintenance.status({});
  expect(errors).toEqual(['etcdserver: no leader', reason]);
  const texts = await Promise.all(pages.map(async (path) => (await fetch(`http://${member.address}${path}`)).text()));
  expect(texts[1]).toBe('{"health":"false","reason":"RAFT NO LEADER"}');
  for (const text of texts) for (const detail of details) expect(text.match(detail)).toBeNull();
}

async function startPair(engine: string, { onTestFinished }: TestContext): Promise<Cluster> {
  const cluster = await Cluster.start(['s1', 's2'].map((name) => ({ name, engine })));
  onTestFinished(() => cluster.stop());
  return cluster;
}

async function expectTrouble(cluster: Cluster, reason: string, words: RegExp): Promise<void> {
  await Promise.all(cluster.members.map((member) => expectTold(member, reason)));
  // The operator reads there what the database said, and where it is.
  expect(cluster.members.map(({ process }) => process.err).join('')).toMatch(words);
}

async function expectWell(cluster: Cluster): Promise<void> {
  for (const member of cluster.members) {
    // A server may be ready again, and take a write, before it has read anything else in the database.
    const errors = await eventually(`${member.name} is well again`, async () => {
      const isReady = (await member.ready()).status === 200 && (await member.put('after', member.name)) > 0;
      const { errors: told } = await member.maintenance.status({});
      return isReady && told.length === 0 ? told : undefined;
    });
    expect(errors).toEqual([]);
  }
}

describe.concurrent('what clients are told of a database in trouble', () => {
  test.skipIf(!hasPostgres())('a PostgreSQL that is stopped cannot be reached', async (context) => {
    const database = await PostgresCluster.create();
    context.onTestFinished(() => database.dispose());
    const cluster = await startPair(database.url(), context);
    await database.stop('immediate');
    await expectTrouble(cluster, 'the database cannot be reached', /ECONNREFUSED 127\.0\.0\.1:\d+/);
    await database.start();
    await expectWell(cluster);
  });

  test.skipIf(!hasPostgres())('a PostgreSQL whose disk is full is full', async (context) => {
    const database = await PostgresCluster.create();
    context.onTestFinished(() => database.dispose());
    const cluster = await startPair(database.url(), context);
    // The error of a full disk, with PostgreSQL's code and words, where an append writes its entry.
    await database.query(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'could not extend file "base/5/16384": No space left on device' USING ERRCODE = 'disk_full';
    END $$`);
    await database.query('CREATE TRIGGER full_disk BEFORE INSERT ON tenure.entries EXECUTE FUNCTION full_disk()');
    await expectTrouble(cluster, 'the database is full', /No space left on device/);
    await database.query('DROP TRIGGER full_disk ON tenure.entries');
    await expectWell(cluster);
  });

  test.skipIf(!hasEtcd())('an etcd that is gone cannot be reached', async (context) => {
    const etcd = await EtcdProcess.start();
    context.onTestFinished(() => etcd.dispose());
    const cluster = await startPair(`etcd://${etcd.endpoint}/tenure`, context);
    await etcd.kill();
    await expectTrouble(cluster, 'the database cannot be reached', /127\.0\.0\.1:\d+/);
    await etcd.start();
    await expectWell(cluster);
  });

  test.skipIf(!hasEtcd())('an etcd at its quota is full', async (context) => {
    const etcd = await EtcdProcess.start();
    context.onTestFinished(() => etcd.dispose());
    const client = new GrpcClient(etcd.endpoint);
    context.onTestFinished(() => client.close());
    const cluster = await startPair(`etcd://${etcd.endpoint}/tenure`, context);
    const maintenance = serviceCalls(client, etcdserverpb.Maintenance);
    const noSpace = {
      alarm: etcdserverpb.AlarmType.NOSPACE,
      memberID: (await maintenance.status({})).header?.memberId ?? 0n,
    };
    await maintenance.alarm({ ...noSpace, action: etcdserverpb.AlarmRequest_AlarmAction.ACTIVATE });
    await expectTrouble(cluster, 'the database is full', /etcd has reached its quota and takes no writes/);
    await maintenance.alarm({ ...noSpace, action: etcdserverpb.AlarmRequest_AlarmAction.DEACTIVATE });
    await expectWell(cluster);
  });
});
