import { freePorts } from '../free-ports.ts';
import { EtcdProcess } from './etcd-process.ts';

/** An etcd of three members. Its peer ports are free when it starts, as far as the system knows. */
export async function startEtcdCluster(): Promise<readonly EtcdProcess[]> {
  const names = ['one', 'two', 'three'];
  const peers = (await freePorts(names.length)).map((port) => `http://127.0.0.1:${port}`);
  const cluster = names.map((name, at) => `${name}=${peers[at]}`).join(',');
  const members = names.map((name, at) =>
    EtcdProcess.start(
      `--name=${name}`,
      `--listen-peer-urls=${peers[at]}`,
      `--initial-advertise-peer-urls=${peers[at]}`,
      `--initial-cluster=${cluster}`,
    ),
  );
  return Promise.all(members);
}
