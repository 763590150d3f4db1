import { EtcdProcess, frameMessage, hasEtcd, hasPostgres, PostgresCluster, RawClient } from '@tenure/test-support';
import { toBinary, create } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { describe, expect, test, type TestContext } from 'vitest';
import { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { serviceCalls } from '../../conformance/client/service-calls.ts';
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
/** Hosts, ports, users, SQL, file names and drivers, which must not be disclosed to clients. */
const details = [
  /127\.0\.0\.1|localhost|:\d{4,5}\b|postgres|etcd:\/\//,
  /ECONN|SQL|INSERT|tenure\.entries|extend file|base\/5|space exceeded|quota-backend/,
];

/** The replies of a server while the database is unavailable. */
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
  // The server's log, for the operator, has the message of the database and its address.
  expect(cluster.members.map(({ process }) => process.err).join('')).toMatch(words);
}

async function expectWell(cluster: Cluster): Promise<void> {
  for (const member of cluster.members) {
    // A server may be ready again and accept a write before it has read anything else from the database.
    const errors = await eventually(`${member.name} is healthy again`, async () => {
      const isReady = (await member.ready()).status === 200 && (await member.put('after', member.name)) > 0;
      const { errors: told } = await member.maintenance.status({});
      return isReady && told.length === 0 ? told : undefined;
    });
    expect(errors).toEqual([]);
  }
}

describe.concurrent('what clients are told about an unavailable database', () => {
  test.skipIf(!hasPostgres())('a stopped PostgreSQL cannot be reached', async (context) => {
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
    // PostgreSQL's code and message for a full disk, raised where an append writes its entry.
    await database.query(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'could not extend file "base/5/16384": No space left on device' USING ERRCODE = 'disk_full';
    END $$`);
    await database.query('CREATE TRIGGER full_disk BEFORE INSERT ON tenure.entries EXECUTE FUNCTION full_disk()');
    await expectTrouble(cluster, 'the database is full', /No space left on device/);
    await database.query('DROP TRIGGER full_disk ON tenure.entries');
    await expectWell(cluster);
  });

  test.skipIf(!hasEtcd())('a stopped etcd cannot be reached', async (context) => {
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
