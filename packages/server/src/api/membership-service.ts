import { etcdserverpb } from '@tenure/protocol';
import { decodeRequest, encodeFramed } from '@tenure/codec';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { memberMessage } from './cluster-service.ts';
import { type RequestedBy, requestedOfServers } from './requested.ts';
import { headerMessage } from './response-header.ts';
import type { Identity } from './identity.ts';
import { statusNamed, statusOfCoreError } from './status-of.ts';
import type { GrpcStatus } from '@tenure/grpc-server';

/** Host and port, optionally preceded by a user and followed by a query, without a path. */
const webUrl = /^https?:\/\/(?:[^\s/?#@]*@)?(?:\[[^\s\][/?#@]+\]|[^\s\][/?#@:%]*):\d*(?:[?#]\S*)?$/i;
const socketUrl = /^unixs?:\S*$/i;

export interface MembershipServiceOptions {
  readonly replica: ReplicaAccess;
  readonly identity: Identity;
  readonly leads: () => boolean;
  readonly isUnreachable: (id: bigint) => boolean;
  /** Transfers the leadership to another member; resolves when that is in the log. */
  readonly resign: (target: bigint) => Promise<void>;
}

/**
 * Changes of the members and of the leader. A server that is started on the log becomes a member by itself, so calls to
 * add, update or promote a member are refused; docs/decisions/022-members-come-with-the-log.md says why with these
 * errors.
 */
export class MembershipService {
  readonly #options: MembershipServiceOptions;

  constructor(options: MembershipServiceOptions) {
    this.#options = options;
  }

  /** As in etcd the leader has to confirm it, and the reply has no header. */
  async moveLeader(request: Buffer): Promise<Buffer> {
    const { identity, leads, resign } = this.#options;
    const { targetID } = decodeRequest(etcdserverpb.MoveLeaderRequestSchema, request);
    if (!leads()) throw statusNamed('NotLeader');
    if (!this.#isMember(targetID)) throw statusNamed('BadLeaderTransferee');
    if (targetID !== identity.memberId) await resign(targetID);
    return encodeFramed(etcdserverpb.MoveLeaderResponseSchema, {});
  }

  async add(request: Buffer): Promise<never> {
    const { peerURLs } = decodeRequest(etcdserverpb.MemberAddRequestSchema, request);
    const areUrls = peerURLs.length > 0 && peerURLs.every(isPeerUrl);
    throw statusNamed(areUrls ? 'NotCapable' : 'MemberBadUrls');
  }

  async remove(request: Buffer, { requester }: RequestedBy): Promise<Buffer> {
    const { replica, identity, isUnreachable } = this.#options;
    const { ID: id } = decodeRequest(etcdserverpb.MemberRemoveRequestSchema, request);
    await replica.linearize();
    if (!this.#isMember(id)) throw statusNamed('MemberNotFound');
    if (replica.state.members.length === 1) throw statusNamed('MemberNotEnoughStarted');
    const response = await replica.propose(await requestedOfServers({ kind: 'removeMember', id }, requester, replica));
    if (response.kind === 'error') throw statusOfCoreError(response);
    const { members, currentRevision, epoch } = replica.state;
    return encodeFramed(etcdserverpb.MemberRemoveResponseSchema, {
      header: headerMessage(identity, currentRevision, epoch),
      members: members.map((member) => memberMessage(member, isUnreachable)),
    });
  }

  /** etcd checks the URLs only after it has found the member. */
  async update(request: Buffer): Promise<never> {
    const { ID: id } = decodeRequest(etcdserverpb.MemberUpdateRequestSchema, request);
    throw await this.#refusalFor(id, statusNamed('NotCapable'));
  }

  /** There are no learners. */
  async promote(request: Buffer): Promise<never> {
    const { ID: id } = decodeRequest(etcdserverpb.MemberPromoteRequestSchema, request);
    throw await this.#refusalFor(id, statusNamed('MemberNotLearner'));
  }

  async #refusalFor(id: bigint, known: GrpcStatus): Promise<GrpcStatus> {
    await this.#options.replica.linearize();
    return this.#isMember(id) ? known : statusNamed('MemberNotFound');
  }

  #isMember(id: bigint): boolean {
    return this.#options.replica.state.members.some((member) => member.id === id);
  }
}

/** Whether etcd accepts this as a peer address: it requires a scheme and host:port. */
function isPeerUrl(text: string): boolean {
  const url = text.trim();
  return webUrl.test(url) || socketUrl.test(url);
}
