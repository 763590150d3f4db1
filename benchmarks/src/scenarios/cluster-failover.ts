import { firstAnswer } from '../load/first-answer.ts';
import { median } from '../load/percentile.ts';
import type { Scenario } from '../scenario.ts';
import type { MeasuredCluster } from '../servers/measured-cluster.ts';
import { methods, putRequest, statusOf } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const message = putRequest('k'.repeat(16), 'v'.repeat(64));

/**
 * Kills the leader, and polls the other two every 10 ms for the leader and with a write; when both succeed the killed
 * one is restarted, and the next leader is killed.
 */
export const clusterFailover: Scenario<MeasuredCluster> = {
  name: 'cluster-failover',
  work: 'Leader killed (SIGKILL): until another server names a new leader, median of the kills',
  unit: 's',
  rounds: 3,
  target: { kind: 'valueAtMost', bound: 2 },
  async measure(cluster, { quick }) {
    const leaderSeconds: number[] = [];
    const putSeconds: number[] = [];
    for (let kill = 0; kill < (quick ? 1 : 3); kill += 1) {
      const { named, written } = await killLeader(cluster);
      leaderSeconds.push(named);
      putSeconds.push(written);
    }
    const details = {
      'longest, s': Math.max(...leaderSeconds),
      'until a put is acknowledged, median, s': median(putSeconds),
    };
    return { value: median(leaderSeconds), details };
  },
};

async function killLeader(cluster: MeasuredCluster): Promise<{ named: number; written: number }> {
  const leader = await cluster.leader();
  const others = cluster.addresses.filter((address) => address !== leader);
  const connections = await Promise.all(others.map((address) => GrpcConnection.open(address)));
  const statuses = await Promise.all(connections.map((connection) => askStatus(connection)));
  const term = Math.max(...statuses.map((status) => status.term));
  const killedMs = performance.now();
  const killed = cluster.kill(cluster.addresses.indexOf(leader));
  const isNamed = async (connection: GrpcConnection) => {
    const status = await askStatus(connection);
    return status.term > term && status.leader !== 0n;
  };
  const isWritten = async (connection: GrpcConnection) => {
    await connection.unary(methods.put, message);
    // A write acknowledged by the killed leader before it died would not count.
    return isNamed(connection);
  };
  const askingAll = (ask: (connection: GrpcConnection) => Promise<boolean>) =>
    connections.map((connection) => () => ask(connection));
  const [namedMs, writtenMs] = await Promise.all([
    firstAnswer('a new leader', askingAll(isNamed)),
    firstAnswer('a put after the leader was killed', askingAll(isWritten)),
    killed,
  ]);
  for (const connection of connections) connection.close();
  await cluster.startMember(cluster.addresses.indexOf(leader));
  return { named: (namedMs - killedMs) / 1000, written: (writtenMs - killedMs) / 1000 };
}

async function askStatus(connection: GrpcConnection): Promise<ReturnType<typeof statusOf>> {
  return statusOf(await connection.unary(methods.status, Buffer.alloc(0)));
}
