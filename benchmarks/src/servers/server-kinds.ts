import { fileURLToPath } from 'node:url';
import { builtCommand, type Command } from '@tenure/test-support';
import { etcdPeer } from './etcd-peer.ts';
import type { ServerKind } from './measured-server.ts';

const quotaBytes = 8 * 1024 ** 3;

export const etcdKind: ServerKind = {
  name: 'etcd',
  command: (dataDir, clientPort, peerPort) => {
    const peerUrl = `http://127.0.0.1:${peerPort}`;
    const initialCluster = `bench=${peerUrl}`;
    const args = etcdArguments({ name: 'bench', dataDir, clientPort, peerUrl, initialCluster });
    return { program: etcdPeer().program, args };
  },
};

/** etcd's defaults except for names and addresses, its log level, and a quota that no run reaches. */
export function etcdArguments(member: {
  readonly name: string;
  readonly dataDir: string;
  readonly clientPort: number;
  readonly peerUrl: string;
  readonly initialCluster: string;
}): readonly string[] {
  const { name, dataDir, clientPort, peerUrl, initialCluster } = member;
  const client = `http://127.0.0.1:${clientPort}`;
  return [
    ...['--name', name, '--data-dir', dataDir, '--logger', 'zap', '--log-level', 'error'],
    ...['--listen-client-urls', client, '--advertise-client-urls', client],
    ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl, '--initial-cluster', initialCluster],
    ...['--quota-backend-bytes', String(quotaBytes)],
  ];
}

/** `profileDir` is the folder for a CPU profile of each server process, to analyse a result. */
export function tenureCommand(flags: readonly string[], profileDir?: string): Command {
  const profile = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
  return { program: process.execPath, args: [...profile, builtCommand, 'serve', ...flags] };
}

export function tenureKind(profileDir?: string): ServerKind {
  return {
    name: 'Tenure',
    command: (dataDir, clientPort) => {
      const flags = ['--engine', 'file', '--data-dir', dataDir];
      return tenureCommand([...flags, '--listen-client-urls', `http://127.0.0.1:${clientPort}`], profileDir);
    },
  };
}

/** A handler on node:http2 that answers a put and does no work: the upper limit for any server on node:http2. */
export const emptyHandlerKind: ServerKind = {
  name: 'empty handler',
  command: (_dataDir, clientPort) => ({
    program: process.execPath,
    args: [fileURLToPath(new URL('./empty-handler.js', import.meta.url)), String(clientPort)],
  }),
};
