import { afterAll, beforeAll, describe } from 'vitest';
import {
  advertisedClientUrl,
  memberName,
  type RunningServer,
  type ServerOptions,
} from '../../conformance/servers/server-options.ts';
import { describeConformance } from '../../conformance/suite.ts';
import { hasPostgres, PostgresCluster } from '../../packages/server/src/engines/postgres/testing/postgres-cluster.ts';
import { ClusterMember } from './cluster-member.ts';

/** The etcd API that Tenure says it speaks, in Status and at /version. */
const apiVersion = '3.6.0';

const oneServer = 'it is about a cluster of one server';
const exceptions: ReadonlyMap<string, string> = new Map([
  [
    'renews many leases on one stream, answered in the order of the requests',
    'what one lease waits for holds up no other, so only the answers about one lease are in order',
  ],
  ['answers Status: one member that leads itself and lags behind nothing', oneServer],
  ['lists the one member by the id in each header', oneServer],
  ['etcdserverpb.Cluster/MemberRemove says so', oneServer],
  ['etcdserverpb.Maintenance/MoveLeader says so', oneServer],
]);

describe.skipIf(!hasPostgres())('through a follower on PostgreSQL:', () => {
  let database: PostgresCluster;
  let clusters = 0;

  beforeAll(async () => {
    database = await PostgresCluster.create();
  });
  afterAll(() => database?.dispose());

  /** Two servers on a log of their own; the second is the one that is asked. */
  const start = async (options: ServerOptions = {}): Promise<RunningServer> => {
    clusters += 1;
    const both = { engine: database.url(), flags: ['--engine-schema', `cluster_${clusters}`, ...flagsOf(options)] };
    const leader = await ClusterMember.start({ ...both, name: 'leader' });
    const flags = [...both.flags, '--advertise-client-urls', advertisedClientUrl];
    const follower = await ClusterMember.start({ ...both, name: memberName, flags });
    if ((await follower.leadership()).leads) throw new Error('the server that is asked leads');
    return {
      kind: 'tenure',
      address: follower.address,
      name: memberName,
      advertisedClientUrl,
      pid: follower.process.pid,
      stop: async () => {
        await Promise.all([leader.stop('SIGKILL'), follower.stop('SIGKILL')]);
      },
    };
  };

  describeConformance({ kind: 'tenure', apiVersion, exceptions, start });
});

function flagsOf(options: ServerOptions): string[] {
  const { quotaBackendBytes, maxRequestBytes, maxTxnOps, progressNotifyIntervalMs } = options;
  const flags: [string, number | undefined, string][] = [
    ['quota-backend-bytes', quotaBackendBytes, ''],
    ['max-request-bytes', maxRequestBytes, ''],
    ['max-txn-ops', maxTxnOps, ''],
    ['watch-progress-notify-interval', progressNotifyIntervalMs, 'ms'],
  ];
  return flags.flatMap(([flag, value, unit]) => (value === undefined ? [] : [`--${flag}=${value}${unit}`]));
}
