import { etcdserverpb } from '@tenure/protocol';
import { decodeRequest, encodeFramed } from '@tenure/codec';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { memberMessage } from './cluster-service.ts';
import { headerMessage } from './response-header.ts';
import type { Identity } from './identity.ts';
import { statusNamed, statusOfCoreError } from './status-of.ts';
import type { GrpcStatus } from '../transport/grpc-status.ts';

/** Host and port, perhaps with a user before them and a query behind, and no path. */
const webUrl = /^https?:\/\/(?:[^\s/?#@]*@)?(?:\[[^\s\][/?#@]+\]|[^\s\][/?#@:%]*):\d*(?:[?#]\S*)?$/i;
const socketUrl = /^unixs?:\S*$/i;

export interface MembershipServiceOptions {
  readonly replica: ReplicaAccess;
  readonly identity: Identity;
  readonly leads: () => boolean;
  readonly isUnreachable: (id: bigint) => boolean;
  /** Hands the lead to another member; resolves when that is in the log. */
  readonly resign: (target: bigint) => Promise<void>;
}

/**
 * What changes the members, and which of them leads. Members come by themselves: a server that is started on the log
 * is one. So none can be added or updated by a call. Why such calls are answered as they are says
 * docs/decisions/022-members-come-with-the-log.md.
 */
export class MembershipService {
  readonly #options: MembershipServiceOptions;

  constructor(options: MembershipServiceOptions) {
    this.#options = options;
  }

  /** As in etcd the leader has to be asked, and no header comes back. */
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

  async remove(request: Buffer): Promise<Buffer> {
    const { replica, identity, isUnreachable } = this.#options;
    const { ID: id } = decodeRequest(etcdserverpb.MemberRemoveRequestSchema, request);
    await replica.linearize();
    if (!this.#isMember(id)) throw statusNamed('MemberNotFound');
    if (replica.state.members.length === 1) throw statusNamed('MemberNotEnoughStarted');
    const response = await replica.propose({ kind: 'removeMember', id });
    if (response.kind === 'error') throw statusOfCoreError(response);
    const { members, currentRevision, epoch } = replica.state;
    return encodeFramed(etcdserverpb.MemberRemoveResponseSchema, {
      header: headerMessage(identity, currentRevision, epoch),
      members: members.map((member) => memberMessage(member, isUnreachable)),
    });
  }

  /** etcd does not look at the URLs before it has found the member. */
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

/** Whether etcd takes this for an address where members reach each other: it asks for a scheme and host:port. */
function isPeerUrl(text: string): boolean {
  const url = text.trim();
  return webUrl.test(url) || socketUrl.test(url);
}
