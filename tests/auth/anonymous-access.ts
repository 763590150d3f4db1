import { etcdserverpb } from '@tenure/protocol';
import { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { serviceCalls, type ServiceCalls } from '../../conformance/client/service-calls.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';

/** A connection to a server whose calls have no token but their own: that of a member is root's. */
export interface AnonymousAccess {
  readonly name: string;
  readonly client: GrpcClient;
  readonly kv: ServiceCalls<typeof etcdserverpb.KV.method>;
  readonly lease: ServiceCalls<typeof etcdserverpb.Lease.method>;
  readonly auth: ServiceCalls<typeof etcdserverpb.Auth.method>;
}

/** One connection to each server. */
export class AnonymousConnections {
  readonly #open = new Map<ClusterMember, AnonymousAccess>();

  to(member: ClusterMember): AnonymousAccess {
    const known = this.#open.get(member);
    if (known !== undefined) return known;
    const client = new GrpcClient(member.address);
    const access: AnonymousAccess = {
      name: member.name,
      client,
      kv: serviceCalls(client, etcdserverpb.KV),
      lease: serviceCalls(client, etcdserverpb.Lease),
      auth: serviceCalls(client, etcdserverpb.Auth),
    };
    this.#open.set(member, access);
    return access;
  }

  close(): void {
    for (const { client } of this.#open.values()) client.close();
  }
}
