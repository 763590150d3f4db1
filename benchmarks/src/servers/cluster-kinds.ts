import { join } from 'node:path';
import { freePorts, PostgresCluster } from '@tenure/test-support';
import { etcdPeer } from './etcd-peer.ts';
import { MeasuredCluster } from './measured-cluster.ts';
import type { ClusterKind, ClusterPlan } from './measured-cluster.ts';
import { cpuMsOf } from './measured-process.ts';
import { etcdArguments, tenureCommand } from './server-kinds.ts';

const names = ['one', 'two', 'three'] as const;

export const etcdClusterKind: ClusterKind = {
  name: 'etcd',
  plan: async (folder) => {
    const ports = await freePorts(2 * names.length);
    const members = names.map((name, at) => {
      const [clientPort = 0, peerPort = 0] = ports.slice(2 * at);
      return { name, clientPort, peerUrl: `http://127.0.0.1:${peerPort}` };
    });
    const initialCluster = members.map(({ name, peerUrl }) => `${name}=${peerUrl}`).join(',');
    return {
      below: [],
      members: members.map(({ name, clientPort, peerUrl }) => ({
        address: `127.0.0.1:${clientPort}`,
        command: {
          program: etcdPeer().program,
          args: etcdArguments({ name, dataDir: join(folder, name), clientPort, peerUrl, initialCluster }),
        },
      })),
    };
  },
};

/** `profileDir` as for a single server. */
export function tenureOnPostgresKind(profileDir?: string): ClusterKind {
  return {
    name: 'Tenure',
    plan: async () => {
      const database = await PostgresCluster.createWithDefaults();
      const below = { cpuMs: () => cpuMsOf(database.pid), stop: () => database.dispose() };
      return planOf(database.url(), [below], profileDir);
    },
  };
}

/** The etcd below has three members too, so that seven processes share the machine. */
export function tenureOnEtcdKind(profileDir?: string): ClusterKind {
  return {
    name: 'Tenure on etcd',
    plan: async () => {
      const etcd = await MeasuredCluster.start(etcdClusterKind);
      const below = { cpuMs: () => etcd.cpu().membersMs, stop: () => etcd.close() };
      return planOf(`etcd://${etcd.addresses.join(',')}/tenure`, [below], profileDir);
    },
  };
}

async function planOf(engine: string, below: ClusterPlan['below'], profileDir?: string): Promise<ClusterPlan> {
  const ports = await freePorts(names.length);
  return {
    below,
    members: names.map((name, at) => ({
      address: `127.0.0.1:${ports[at]}`,
      command: tenureCommand(
        ['--name', name, '--engine', engine, '--listen-client-urls', `http://127.0.0.1:${ports[at]}`],
        profileDir,
      ),
    })),
  };
}
