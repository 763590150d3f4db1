import { decodeMessage, encodeFramed, etcdserverpb } from '@tenure/protocol';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { memberMessage } from './cluster-service.ts';
import { headerMessage } from './header-message.ts';
import type { Identity } from './identity.ts';
import { statusNamed, statusOf, statusOfCoreError } from './status-of.ts';
import type { MethodHandler } from './transport/transport.ts';

export interface MembershipServiceOptions {
  readonly replica: ReplicaAccess;
  readonly identity: Identity;
  readonly leads: () => boolean;
  readonly isUnreachable: (id: bigint) => boolean;
  /** Hands the lead to another member; resolves when that is in the log. */
  readonly resign: (target: bigint) => Promise<void>;
}

/** What only a cluster of several servers has: the lead can be handed on, and members forgotten. */
export class MembershipService {
  readonly routes: ReadonlyMap<string, MethodHandler> = new Map([
    ['/etcdserverpb.Maintenance/MoveLeader', handled((request) => this.#moveLeader(request))],
    ['/etcdserverpb.Cluster/MemberRemove', handled((request) => this.#removeMember(request))],
  ]);
  readonly #options: MembershipServiceOptions;

  constructor(options: MembershipServiceOptions) {
    this.#options = options;
  }

  /** As in etcd the leader has to be asked, and no header comes back. */
  async #moveLeader(request: Buffer): Promise<Buffer> {
    const { replica, identity, leads, resign } = this.#options;
    const { targetID } = decodeMessage(etcdserverpb.MoveLeaderRequestSchema, request);
    if (!leads()) throw statusNamed('NotLeader');
    const known = replica.state.members.some(({ id }) => id === targetID);
    if (!known) throw statusNamed('BadLeaderTransferee');
    if (targetID !== identity.memberId) await resign(targetID);
    return encodeFramed(etcdserverpb.MoveLeaderResponseSchema, {});
  }

  async #removeMember(request: Buffer): Promise<Buffer> {
    const { replica, identity, isUnreachable } = this.#options;
    const { ID: id } = decodeMessage(etcdserverpb.MemberRemoveRequestSchema, request);
    await replica.linearize();
    if (!replica.state.members.some((member) => member.id === id)) throw statusNamed('MemberNotFound');
    const response = await replica.propose({ kind: 'removeMember', id });
    if (response.kind === 'error') throw statusOfCoreError(response);
    const { members, currentRevision, epoch } = replica.state;
    return encodeFramed(etcdserverpb.MemberRemoveResponseSchema, {
      header: headerMessage(identity, currentRevision, epoch),
      members: members.map((member) => memberMessage(member, isUnreachable)),
    });
  }
}

function handled(handle: (request: Buffer) => Promise<Buffer>): MethodHandler {
  return {
    kind: 'unary',
    handle: (request) =>
      handle(request).catch((error: unknown) => {
        throw statusOf(error) ?? error;
      }),
  };
}
