import { etcdserverpb } from '@tenure/protocol';
import type { EtcdConnection } from '../connection/etcd-connection.ts';

export interface ServerStatus {
  readonly endpoint: string;
  readonly version: string;
  readonly memberId: bigint;
  /** The id of the leader; 0 if there is none. */
  readonly leader: bigint;
  readonly dbSizeBytes: number;
  readonly raftTerm: bigint;
  readonly raftIndex: bigint;
  readonly raftAppliedIndex: bigint;
  readonly revision: bigint;
  /** The problems of the server, as text. */
  readonly errors: readonly string[];
  /** Tenure's own version, if it is a Tenure server. */
  readonly tenureVersion: string | undefined;
}

export interface ServerMember {
  readonly id: bigint;
  readonly name: string;
  readonly clientUrls: readonly string[];
}

/** Calls for operators of a cluster. All reject with EtcdError. */
export class MaintenanceClient {
  readonly #connection: EtcdConnection;

  constructor(connection: EtcdConnection) {
    this.#connection = connection;
  }

  /** For each endpoint, in their order: its status, or the error of the request. */
  statuses(): Promise<PromiseSettledResult<ServerStatus>[]> {
    return Promise.allSettled(this.#connection.addresses.map((endpoint, at) => this.#status(endpoint, at)));
  }

  async members(): Promise<readonly ServerMember[]> {
    const { members } = await this.#connection.read(etcdserverpb.Cluster.method.memberList, {});
    return members.map(({ ID, name, clientURLs }) => ({ id: ID, name, clientUrls: clientURLs }));
  }

  async #status(endpoint: string, at: number): Promise<ServerStatus> {
    const answer = await this.#connection.readAt(at, etcdserverpb.Maintenance.method.status, {});
    return {
      endpoint,
      version: answer.version,
      memberId: answer.header?.memberId ?? 0n,
      leader: answer.leader,
      dbSizeBytes: Number(answer.dbSize),
      raftTerm: answer.raftTerm,
      raftIndex: answer.raftIndex,
      raftAppliedIndex: answer.raftAppliedIndex,
      revision: answer.header?.revision ?? 0n,
      errors: answer.errors,
      tenureVersion: answer.tenureVersion === '' ? undefined : answer.tenureVersion,
    };
  }
}
