import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PostgresDatabase, TestAuthority, type TestCertificate } from '@tenure/test-support';
import { Cluster } from '../cluster/cluster.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { PeerStranger } from './peer-stranger.ts';

/** Servers on one PostgreSQL, the certificates for the ports between them, and strangers at those ports. */
export class PeerCluster extends Cluster {
  readonly authority: TestAuthority;
  /** Of another authority. */
  readonly other: TestAuthority;
  /** The certificate of each server, with the common name `server`. */
  readonly server: TestCertificate;
  readonly #folder: string;
  readonly #database: PostgresDatabase;
  readonly #strangers: PeerStranger[] = [];

  private constructor(database: PostgresDatabase) {
    super();
    this.#folder = mkdtempSync(join(tmpdir(), 'tenure-peer-port-'));
    this.#database = database;
    this.authority = new TestAuthority(this.#folder);
    this.other = new TestAuthority(this.#folder, 'other');
    this.server = this.authority.issue('server');
  }

  static async create(): Promise<PeerCluster> {
    return new PeerCluster(await PostgresDatabase.create());
  }

  /** The flags of a port for servers that takes only certificates of the authority. */
  flags(more: readonly string[] = [], { certFile, keyFile } = this.server): readonly string[] {
    const port = ['--listen-peer-urls', 'https://127.0.0.1:0', '--peer-client-cert-auth'];
    return [...port, ...this.files({ certFile, keyFile }), ...more];
  }

  /** The flags of a server that has a certificate for others, and no port. */
  files({ certFile, keyFile } = this.server): readonly string[] {
    const { caFile } = this.authority;
    return ['--peer-cert-file', certFile, '--peer-key-file', keyFile, '--peer-trusted-ca-file', caFile];
  }

  /** For the certificate that a server makes. */
  folderOf(name: string): string {
    return join(this.#folder, 'data', name);
  }

  startServer(name: string, flags: readonly string[]): Promise<ClusterMember> {
    return this.join({ name, engine: this.#database.url(), flags });
  }

  /** Resolves with the leader. */
  async startServers(flags: readonly string[]): Promise<ClusterMember> {
    await Promise.all(['s1', 's2', 's3'].map((name) => this.startServer(name, flags)));
    return this.leader();
  }

  /** The peer URLs of each member by name, in the view of this server. */
  async peerUrls(member: ClusterMember): Promise<Readonly<Record<string, readonly string[]>>> {
    const { members } = await member.cluster.memberList({});
    return Object.fromEntries(members.map(({ name, peerURLs }) => [name, peerURLs]));
  }

  async strangerTo(member: ClusterMember): Promise<PeerStranger> {
    const [url = ''] = (await this.peerUrls(member))[member.name] ?? [];
    const stranger = new PeerStranger(url, this.authority);
    this.#strangers.push(stranger);
    return stranger;
  }

  async dispose(): Promise<void> {
    for (const stranger of this.#strangers.splice(0)) stranger.leave();
    await this.stop();
    await this.#database.dispose();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Puts through this server, one after the other, until it is stopped. Resolves with the number of puts. */
export function keepPutting(member: ClusterMember): () => Promise<number> {
  let isOver = false;
  const run = async (): Promise<number> => {
    let puts = 0;
    for (; !isOver; puts += 1) await member.put('kept', `${puts}`);
    return puts;
  };
  const running = run();
  running.catch(() => {});
  return () => {
    isOver = true;
    return running;
  };
}
