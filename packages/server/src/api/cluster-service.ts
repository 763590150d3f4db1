import type { Member } from '@tenure/core';
import { etcdserverpb } from '@tenure/protocol';
import { encodeFramed } from '@tenure/codec';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { headerMessage } from './response-header.ts';
import type { Identity } from './identity.ts';

/** A member in the replies of the Cluster service. */
export function memberMessage(member: Member, isUnreachable: (id: bigint) => boolean) {
  const { id, name, clientUrls, peerUrls = [] } = member;
  return { ID: id, name, clientURLs: [...clientUrls], peerURLs: [...peerUrls], unreachable: isUnreachable(id) };
}

/** etcd's Cluster service: the servers that have registered themselves. */
export class ClusterService {
  readonly #replica: ReplicaAccess;
  readonly #identity: Identity;
  readonly #isUnreachable: (id: bigint) => boolean;

  constructor(replica: ReplicaAccess, identity: Identity, isUnreachable: (id: bigint) => boolean) {
    this.#replica = replica;
    this.#identity = identity;
    this.#isUnreachable = isUnreachable;
  }

  memberList(): Buffer {
    const { state } = this.#replica;
    return encodeFramed(etcdserverpb.MemberListResponseSchema, {
      header: headerMessage(this.#identity, state.currentRevision, state.epoch),
      members: state.members.map((member) => memberMessage(member, this.#isUnreachable)),
    });
  }
}
